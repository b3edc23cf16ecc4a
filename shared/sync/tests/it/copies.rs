//! From store to store.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    sync::{Arc, Mutex},
};

use layout::{Key, Outcome, Sha256};
use rstest::rstest;
use store::{
    MemoryStore, Store,
    memory::{Action, Answer, Moment},
};
use sync::{Allow, Settings};

use crate::kit::{
    DERIVED, V1, V2, assert_sound, copier, mirror, name, publish, published, remake_image_index, republish, snapshot,
};

fn settings(rebuild: bool) -> Settings {
    Settings {
        rebuild,
        source: "test".into(),
        ..Settings::default()
    }
}

#[rstest]
#[case::moved(false)]
#[case::rebuilt(true)]
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_the_original_byte_for_byte(#[case] rebuild: bool) {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let first = copier(&from, &to, settings(rebuild)).copy(&name()).await;
    assert_eq!((first.error_text(), first.outcome), (None, Outcome::Published));
    assert_eq!(first.rebuilt.objects, if rebuild { DERIVED } else { 0 });
    assert_eq!(published(&memory).await, published(&original).await);
    assert_eq!(
        copier(&from, &to, settings(rebuild)).copy(&name()).await.outcome,
        Outcome::Unchanged
    );

    publish(&from, &name(), V2).await;
    let update = copier(&from, &to, settings(rebuild)).copy(&name()).await;
    assert_eq!((update.error_text(), update.outcome), (None, Outcome::Published));
    // The pointer, the snapshot, two shards, and what is not made here.
    assert_eq!(update.moved.objects, if rebuild { 4 } else { 4 + DERIVED });
    assert_eq!(published(&memory).await, published(&original).await);
    assert_sound(&memory).await;

    let (again, onward) = mirror(&[]).await;
    copier(&to, &onward, settings(rebuild)).copy(&name()).await;
    assert_eq!(published(&again).await, published(&original).await);
}

/// As if another catalog with the same packages, copied side by side, had always been faster.
#[rstest]
#[case::moved(false)]
#[case::rebuilt(true)]
#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_wrote_meanwhile_will_do(#[case] rebuild: bool) {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let conflicts = Arc::new(Mutex::new(0));
    let count = Arc::clone(&conflicts);
    memory.set_hook(move |call, when| {
        let is_shared = matches!(call.key, Some(Key::Shard(_) | Key::Blob(_)));
        let is_write = matches!(call.action, Action::Put(_) | Action::Commit(_));
        if !is_shared || !is_write || when == Moment::Before {
            return Answer::GoOn;
        }
        *count.lock().unwrap() += 1;
        Answer::Conflict
    });
    let once = Settings {
        attempts: 1,
        ..settings(rebuild)
    };
    let copy = copier(&from, &to, once).copy(&name()).await;
    assert_eq!((copy.error_text(), copy.outcome), (None, Outcome::Published));
    assert!(*conflicts.lock().unwrap() > 0);
    memory.clear_hook();
    assert_eq!(published(&memory).await, published(&original).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_catalog_costs_one_read_and_one_status() {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let copier = copier(&from, &to, settings(true));
    copier.copy(&name()).await;
    original.take_log();
    memory.take_log();
    copier.copy(&name()).await;
    let read: Vec<_> = original.take_log().into_iter().filter_map(|call| call.key).collect();
    assert_eq!(BTreeSet::from_iter(read), BTreeSet::from([Key::Current(name())]));
    assert_eq!(memory.written(), [Key::Status(name())]);
}

/// Lets the operation with this number fail, at a moment. Returns whether there was one.
async fn copy_with_a_fault(at: u64, moment: Moment, kill: bool, rebuild: bool) -> bool {
    let (_, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    copier(&from, &to, settings(rebuild)).copy(&name()).await;
    let before = published(&memory).await;
    publish(&from, &name(), V2).await;

    let first = memory.take_log().len() as u64;
    let hit = Arc::new(Mutex::new(false));
    let killed = Arc::new(tokio::sync::Notify::new());
    let (gone, is_gone) = tokio::sync::watch::channel(false);
    let (was_hit, kill_now) = (hit.clone(), killed.clone());
    memory.set_hook(move |call, when| {
        let this = call.number == first + at;
        // What fails by itself, such as a look at what is not there, has no second moment.
        *was_hit.lock().unwrap() |= this;
        if !this || when != moment {
            return Answer::GoOn;
        }
        if !kill {
            return Answer::Fail;
        }
        kill_now.notify_one();
        // Threads of the killed run must not outlive the test.
        let mut is_gone = is_gone.clone();
        Answer::Wait(Box::pin(async move {
            drop(is_gone.wait_for(|gone| *gone).await);
            Answer::Fail
        }))
    });
    let copying = copier(&from, &to, settings(rebuild));
    let name = name();
    tokio::select! {
        _ = copying.copy(&name) => {}
        () = killed.notified() => {}
    }
    drop(copying);
    gone.send_replace(true);
    memory.clear_hook();
    // What was put and not flushed is lost if the power goes as well.
    memory.cut_power(|_| at.is_multiple_of(2));

    assert_sound(&memory).await;
    let now = published(&memory).await;
    let done = {
        let (goal, from) = mirror(&[V1]).await;
        publish(&from, &name, V2).await;
        published(&goal).await
    };
    assert!(
        now == before || now == done,
        "neither the old state nor the new one after {at}"
    );
    let next = copier(&from, &to, settings(rebuild)).copy(&name).await;
    assert_eq!(next.error_text(), None, "the next run after {at}");
    assert_eq!(published(&memory).await, done);
    assert_sound(&memory).await;
    *hit.lock().unwrap()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn stopped_at_any_operation_the_store_is_whole_and_the_next_run_finishes(
    #[values(false, true)] kill: bool,
    #[values(false, true)] rebuild: bool,
    #[values(Moment::Before, Moment::After)] moment: Moment,
) {
    let mut at = 0;
    while copy_with_a_fault(at, moment, kill, rebuild).await {
        at += 1;
    }
    assert!(at > 20, "only {at} operations were tried");
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_and_aside_have_to_be_allowed() {
    let (_, older) = mirror(&[V1]).await;
    let (_, newer) = mirror(&[V1, V2]).await;
    let (_, other) = mirror(&[&[("else", 1)]]).await;
    for (from, allow) in [
        (
            &older,
            Allow {
                rollback: true,
                diverged: false,
            },
        ),
        (
            &other,
            Allow {
                rollback: true,
                diverged: true,
            },
        ),
    ] {
        let (memory, to) = mirror(&[]).await;
        copier(&newer, &to, settings(true)).copy(&name()).await;
        let before = published(&memory).await;
        let refused = copier(from, &to, settings(true)).copy(&name()).await;
        assert_eq!(refused.outcome, Outcome::Refused);
        assert_eq!(published(&memory).await, before);
        let allowed = Settings {
            allow,
            ..settings(true)
        };
        let taken = copier(from, &to, allowed).copy(&name()).await;
        assert_eq!((taken.error_text(), taken.outcome), (None, Outcome::Published));
        assert_sound(&memory).await;
    }
}

/// What a killed run or a failing disk left under the keys of the new state.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_leftovers_are_replaced() {
    let (original, from) = mirror(&[V1]).await;
    for named in snapshot(&from).await.objects(&name()) {
        let (memory, to) = mirror(&[]).await;
        crate::kit::put(&to, &named.key, b"something else".to_vec()).await;
        let report = copier(&from, &to, settings(true)).copy(&name()).await;
        assert_eq!(report.repaired, [named.key.to_string()]);
        assert_eq!(published(&memory).await, published(&original).await);
    }
}

/// Whatever is damaged, it alone is made or fetched again.
#[rstest]
#[case::moved(false)]
#[case::rebuilt(true)]
#[tokio::test(flavor = "multi_thread")]
async fn a_recheck_repairs_what_is_believed_to_be_there(#[case] rebuild: bool) {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    copier(&from, &to, settings(rebuild)).copy(&name()).await;
    for named in snapshot(&from).await.objects(&name()) {
        memory.corrupt(&named.key, &b"rot"[..]);
        let recheck = Settings {
            recheck: true,
            ..settings(rebuild)
        };
        let report = copier(&from, &to, recheck).copy(&name()).await;
        assert_eq!((report.error_text(), report.outcome), (None, Outcome::Unchanged));
        assert_eq!(report.repaired, [named.key.to_string()]);
        let made = rebuild && !matches!(named.key, Key::Shard(_));
        assert_eq!(report.rebuilt.objects, u64::from(made), "{}", named.key);
        assert_eq!(published(&memory).await, published(&original).await);
    }
}

/// The origin's own objects are not what its documents say: nothing of it gets a key.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_origin_is_not_copied() {
    let (_, clean) = mirror(&[V1]).await;
    for named in snapshot(&clean).await.objects(&name()) {
        let (original, from) = mirror(&[V1]).await;
        original.corrupt(&named.key, vec![0; named.stored.size as usize]);
        let (memory, to) = mirror(&[]).await;
        let report = copier(&from, &to, settings(false)).copy(&name()).await;
        assert_eq!(report.outcome, Outcome::Failed);
        let text = report.error_text().unwrap();
        assert!(text.contains(&named.key.to_string()), "{text}");
        assert!(!memory.objects().contains_key(&named.key));
        assert!(!memory.objects().contains_key(&Key::Current(name())));
    }
}

/// An image that another version of this program, or of its compressor, made cannot be made here.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_was_made_in_another_way_is_fetched() {
    let (original, from) = mirror(&[V1]).await;
    let plain = snapshot(&from).await;
    let layer = plain.image.clone().unwrap().layer;
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(&original.objects()[&Key::Blob(layer.sha256)][..])
        .read_to_end(&mut tar)
        .unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(&tar).unwrap();
    let other = crate::kit::put_image(&from, encoder.finish().unwrap(), Sha256::of(&tar)).await;
    let image = Some(other.clone());
    republish(&from, &layout::Snapshot { image, ..plain }).await;
    let index = remake_image_index(&from).await;

    let (memory, to) = mirror(&[]).await;
    let report = copier(&from, &to, settings(true)).copy(&name()).await;
    assert_eq!((report.error_text(), report.outcome), (None, Outcome::Published));
    let layer = Key::Blob(other.layer.sha256);
    assert_eq!(report.not_rebuilt, [layer, index].map(|key| key.to_string()));
    assert_eq!(report.rebuilt.objects, DERIVED - 2);
    assert_eq!(published(&memory).await, published(&original).await);
    assert_sound(&memory).await;
}

/// The layer is what it should be, and the snapshot gives another hash for what it unpacks to.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_contradicts_its_lines_is_not_copied() {
    let (_, from) = mirror(&[V1]).await;
    let plain = snapshot(&from).await;
    let layer = plain.image.as_ref().unwrap().layer;
    let documents = oci::Documents::new(layer, Sha256::of(b"another tar"));
    let image = Some(documents.image(layer, Sha256::of(b"another tar")));
    republish(&from, &layout::Snapshot { image, ..plain }).await;
    let (memory, to) = mirror(&[]).await;
    let report = copier(&from, &to, settings(true)).copy(&name()).await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.error_text().unwrap().contains("does not hold"), "{report:?}");
    assert!(!memory.objects().contains_key(&Key::Current(name())));
}

/// Snapshots of older versions have no image, and so do their copies.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_without_an_image_is_copied_as_it_is() {
    let (original, from) = mirror(&[V1]).await;
    let older = layout::Snapshot {
        image: None,
        ..snapshot(&from).await
    };
    republish(&from, &older).await;
    let (memory, to) = mirror(&[]).await;
    let report = copier(&from, &to, settings(true)).copy(&name()).await;
    assert_eq!((report.error_text(), report.rebuilt.objects), (None, 4));
    assert_eq!(published(&memory).await, published(&original).await);
    assert!(!memory.objects().keys().any(|key| matches!(key, Key::Blob(_))));
}

/// A shard that another catalog names in another compressed form stays as it is.
#[tokio::test(flavor = "multi_thread")]
async fn shards_that_others_name_are_not_recompressed() {
    let (_, from) = mirror(&[V1]).await;
    let memory = MemoryStore::new();
    let to: Arc<dyn Store> = Arc::new(memory.clone());
    publish(&to, &"other".parse().unwrap(), V1).await;
    let shard = snapshot(&from).await.packages[0].clone();
    // As a newer compressor at the origin would have made it.
    let lines = zstd::decode_all(&memory.objects()[&Key::Shard(shard.sha256)][..]).unwrap();
    let bytes = zstd::bulk::compress(&lines, 19).unwrap();
    assert_eq!(Sha256::of(&lines), shard.sha256);
    recompress(&from, &shard, bytes).await;
    let report = copier(&from, &to, settings(true)).copy(&name()).await;
    assert!(report.error_text().unwrap().contains("other"), "{report:?}");
}

async fn recompress(store: &Arc<dyn Store>, shard: &layout::ShardRef, bytes: Vec<u8>) {
    let mut changed = snapshot(store).await;
    changed.packages[0].stored = crate::kit::put(store, &Key::Shard(shard.sha256), bytes).await;
    republish(store, &changed).await;
}
