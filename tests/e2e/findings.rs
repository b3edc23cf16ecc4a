//! Faults that an attack on an earlier version found, each as a user meets it.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::{Key, Outcome};
use publish::MirrorSettings;
use storekit::{Action, Answer, Moment};
use trust::{Signer, SigningKey};

use crate::support::{site::Site, work::Work};

/// Finding 4: a published state with missing or damaged objects stayed as it was, although its
/// source has everything.
#[tokio::test(flavor = "multi_thread")]
async fn poll_restores_missing_and_truncated_objects_and_forced_flipped_ones() {
    let mut site = Site::published().await;
    let objects = site.store.objects().into_iter();
    for (key, bytes) in objects.filter(|(key, _)| matches!(key, Key::Object(..))) {
        for is_lost in [true, false] {
            match is_lost {
                true => site.store.lose(&key),
                false => site.store.truncate(&key, 3),
            }
            // A mirror looks for the objects of a state once.
            site.restart_with(MirrorSettings::default());
            site.poll().await;
            site.is_sound().await;
        }
        let mut flipped = bytes.to_vec();
        *flipped.last_mut().unwrap() ^= 1;
        site.store.corrupt(&key, flipped);
        let found = upkeep::verify(&site.store, &site.catalog.name)
            .await
            .unwrap();
        assert_ne!(found.findings, [], "{key}");
        site.poll_forced().await;
        site.is_sound().await;
    }
}

/// Findings 5 and 12: a republication of equal content with other options replaced objects in
/// place, so that its end in the middle left a published state that does not verify. The store
/// refuses all writes after some number of them.
#[tokio::test(flavor = "multi_thread")]
async fn republication_that_ends_after_any_write_leaves_a_sound_state() {
    let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
    for writes in 0..200 {
        let mut site = Site::published().await;
        site.restart_with(MirrorSettings {
            identity: true,
            signer: Some(Signer::new(vec![key.clone()], Vec::new())),
            ..MirrorSettings::default()
        });
        let done = AtomicUsize::new(0);
        site.store.set_hook(move |call, moment| {
            let is_write = matches!(call.action, Action::Put(_) | Action::Commit(_))
                && moment == Moment::Before;
            let is_refused = is_write && done.fetch_add(1, Ordering::Relaxed) >= writes;
            if is_refused {
                Answer::Deny
            } else {
                Answer::GoOn
            }
        });
        let outcome = site.poll().await.outcome;
        site.store.clear_hook();
        site.is_sound().await;
        if outcome == Outcome::Published {
            assert!(writes > 10, "a republication makes some writes");
            return;
        }
    }
    panic!("a republication never succeeded");
}

/// Finding 14: a lost `catalogs.json` stayed lost, and every command succeeded on what looked like
/// an empty store.
#[test]
fn lost_list_of_names_is_reported_worked_around_and_restored() {
    let work = Work::published();
    fs::remove_file(work.path("store/catalogs.json")).unwrap();
    work.run("ls --store store").exits(0).prints("demo");
    let found = work.run("verify --store store").exits(1);
    found.prints("catalogs.json does not list the catalog");
    work.poll("v1");
    assert!(work.read("store/catalogs.json").contains("demo"));
    work.run("verify --store store").exits(0);
}
