//! Repairs of a store from a copy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Encoding, Key, Kind, ManifestEntry};
use store::Store;
use storekit::{Action, Answer, Moment};
use sync::{Repair, SyncOptions};

use crate::kit::{V1, V2, assert_sound, copier, copy, current, mirror, name, put_raw, snapshot};

async fn repair(from: &Arc<dyn Store>, to: &Arc<dyn Store>) -> Repair {
    let copier = copier(from, to, SyncOptions::default());
    copier.repair(&name()).await.unwrap()
}

/// Another writer repairs the object, and the store fails at that moment.
#[tokio::test(flavor = "multi_thread")]
async fn repair_deletes_nothing_and_accepts_what_another_writer_repaired() {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[V1]).await;
    let gzip = snapshot(&to)
        .await
        .all
        .gzip
        .with_kind(Kind::All(Encoding::Gzip))
        .key();
    for key in [gzip, current(&to, &name()).await.unwrap().snapshot.key()] {
        let sound = original.objects()[&key].clone();
        memory.corrupt(&key, "damaged");
        let (other, damaged) = (memory.clone(), key.clone());
        memory.set_hook(move |call, moment| {
            let is_write = matches!(call.action, Action::Put(_) | Action::Commit(_));
            if is_write && call.key.as_ref() == Some(&damaged) && moment == Moment::Before {
                other.corrupt(&damaged, sound.clone());
            }
            Answer::GoOn
        });
        let repair = repair(&from, &to).await;
        memory.clear_hook();
        assert_eq!(repair.failed, BTreeMap::new());
        assert_eq!(repair.verification.findings, []);
        assert_eq!(memory.count(|action| *action == Action::Delete), 0);
        assert_sound(&memory).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_fetches_every_missing_or_damaged_object() {
    let (original, from) = mirror(&[V1]).await;
    for lost in [false, true] {
        let (memory, to) = mirror(&[V1]).await;
        let snapshot_key = current(&to, &name()).await.unwrap().snapshot.key();
        let entries = snapshot(&to).await.objects();
        let keys: Vec<Key> = entries
            .iter()
            .map(ManifestEntry::key)
            .chain([snapshot_key])
            .collect();
        for key in &keys {
            match lost {
                true => memory.lose(key),
                false => memory.corrupt(key, "damaged"),
            }
        }
        let repair = repair(&from, &to).await;
        assert_eq!(
            (repair.failed, repair.verification.findings),
            (BTreeMap::new(), vec![])
        );
        assert_eq!(repair.repaired.len(), keys.len());
        for key in &keys {
            assert_eq!(memory.objects()[key], original.objects()[key]);
        }
    }
}

/// A bucket or a folder may refuse to overwrite. The error is reported, and nothing is deleted to
/// make room.
#[tokio::test(flavor = "multi_thread")]
async fn repair_reports_objects_that_the_store_refuses() {
    let (_, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[V1]).await;
    let key = snapshot(&to)
        .await
        .all
        .gzip
        .with_kind(Kind::All(Encoding::Gzip))
        .key();
    memory.corrupt(&key, "damaged");
    memory.set_hook(|call, moment| match call.action {
        Action::Put(_) | Action::Commit(_) if moment == Moment::Before => Answer::Deny,
        _ => Answer::GoOn,
    });
    let repair = repair(&from, &to).await;
    memory.clear_hook();
    assert!(
        repair.failed.keys().eq([&key.to_string()]),
        "{:?}",
        repair.failed
    );
    assert_eq!(repair.verification.findings.len(), 1);
    assert_eq!(memory.count(|action| *action == Action::Delete), 0);
}

/// A damaged earlier Snapshot is repaired too: garbage collection needs it.
#[tokio::test(flavor = "multi_thread")]
async fn repair_fetches_earlier_snapshots() {
    let (_, from) = mirror(&[V1, V2]).await;
    let (memory, to) = mirror(&[V1]).await;
    let earlier = current(&to, &name()).await.unwrap().snapshot.key();
    let copied = copy(&from, &to, SyncOptions::default()).await;
    assert!(copied.error.is_none(), "{copied:?}");
    let sound = memory.objects()[&earlier].clone();
    // The second one decodes to the right text, and its bytes do not have the hash of its name.
    let text = zstd::decode_all(&sound[..]).unwrap();
    let recompressed = zstd::bulk::compress(&text, 1).unwrap();
    for damage in [b"no snapshot".to_vec(), recompressed] {
        put_raw(&to, &earlier, damage).await;
        let repair = repair(&from, &to).await;
        assert_eq!(
            (repair.failed, repair.repaired),
            (BTreeMap::new(), BTreeSet::from([earlier.to_string()]))
        );
        assert_eq!(memory.objects()[&earlier], sound);
    }
    assert_sound(&memory).await;
}
