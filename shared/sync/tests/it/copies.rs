//! Copies from store to store.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use catalog_mirror_sync::SyncOptions;
use model::{CatalogName, Catalogs, Document, Key, Kind, Outcome, Sha256, Snapshot};
use rstest::rstest;
use store::{
    Store,
    memory::{Action, Answer, Moment},
};
use testkit::CurrentBuilder;
use trust::{Signer, SigningKey};

use crate::kit::{
    DERIVED, V1, V2, assert_sound, copier, current, mirror, name, publish, published, put, put_image, put_raw,
    remake_image_index, republish, snapshot, write_pointer,
};

fn options(rebuild: bool) -> SyncOptions {
    SyncOptions {
        rebuild,
        source: "test".into(),
        ..SyncOptions::default()
    }
}

#[rstest]
#[case::moved(false)]
#[case::rebuilt(true)]
#[tokio::test(flavor = "multi_thread")]
async fn copy_is_the_original_byte_for_byte(#[case] rebuild: bool) {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let first = copier(&from, &to, options(rebuild)).copy(&name()).await;
    assert_eq!((first.error_text(), first.outcome), (None, Outcome::Published));
    assert_eq!(first.rebuilt.objects, if rebuild { DERIVED } else { 0 });
    assert_eq!(published(&memory).await, published(&original).await);
    assert_eq!(
        copier(&from, &to, options(rebuild)).copy(&name()).await.outcome,
        Outcome::Unchanged
    );

    publish(&from, &name(), V2).await;
    let update = copier(&from, &to, options(rebuild)).copy(&name()).await;
    assert_eq!((update.error_text(), update.outcome), (None, Outcome::Published));
    // The pointer, the snapshot, two shards, and everything that is not rebuilt.
    assert_eq!(update.moved.objects, if rebuild { 4 } else { 4 + DERIVED });
    assert_eq!(published(&memory).await, published(&original).await);
    assert_sound(&memory).await;

    let (again, onward) = mirror(&[]).await;
    copier(&to, &onward, options(rebuild)).copy(&name()).await;
    assert_eq!(published(&again).await, published(&original).await);
}

/// Acts as another catalog with the same packages that is copied at the same time and is always faster.
#[rstest]
#[case::moved(false)]
#[case::rebuilt(true)]
#[tokio::test(flavor = "multi_thread")]
async fn copy_keeps_intact_objects_that_another_writer_put_first(#[case] rebuild: bool) {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let conflicts = Arc::new(Mutex::new(0));
    let count = Arc::clone(&conflicts);
    memory.set_hook(move |call, when| {
        let is_shared = matches!(call.key, Some(Key::Object(Kind::Package | Kind::Blob, _)));
        let is_write = matches!(call.action, Action::Put(_) | Action::Commit(_));
        if !is_shared || !is_write || when == Moment::Before {
            return Answer::GoOn;
        }
        *count.lock().unwrap() += 1;
        Answer::Conflict
    });
    let once = SyncOptions {
        attempts: 1,
        ..options(rebuild)
    };
    let copy = copier(&from, &to, once).copy(&name()).await;
    assert_eq!((copy.error_text(), copy.outcome), (None, Outcome::Published));
    assert!(*conflicts.lock().unwrap() > 0);
    memory.clear_hook();
    assert_eq!(published(&memory).await, published(&original).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_of_unchanged_catalog_costs_one_read_and_one_status() {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let copier = copier(&from, &to, options(true));
    copier.copy(&name()).await;
    original.take_log();
    memory.take_log();
    copier.copy(&name()).await;
    let read: Vec<_> = original.take_log().into_iter().filter_map(|call| call.key).collect();
    assert_eq!(BTreeSet::from_iter(read), BTreeSet::from([Key::Current(name())]));
    assert!(memory.written().iter().all(|key| *key == Key::Status(name())));
}

/// Fails or kills a copy at the operation with this number. Returns true if there was such an operation.
async fn copy_with_a_fault(at: u64, moment: Moment, kill: bool, rebuild: bool) -> bool {
    let (_, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    copier(&from, &to, options(rebuild)).copy(&name()).await;
    let before = published(&memory).await;
    publish(&from, &name(), V2).await;

    let first = memory.take_log().len() as u64;
    let hit = Arc::new(Mutex::new(false));
    let killed = Arc::new(tokio::sync::Notify::new());
    let (gone, is_gone) = tokio::sync::watch::channel(false);
    let (was_hit, kill_now) = (hit.clone(), killed.clone());
    memory.set_hook(move |call, when| {
        let this = call.number == first + at;
        // An operation that fails by itself, such as a read of a missing object, has no second moment.
        *was_hit.lock().unwrap() |= this;
        if !this || when != moment {
            return Answer::GoOn;
        }
        if !kill {
            return Answer::Fail;
        }
        kill_now.notify_one();
        // The threads of the killed copy must end with the test.
        let mut is_gone = is_gone.clone();
        Answer::Wait(Box::pin(async move {
            drop(is_gone.wait_for(|gone| *gone).await);
            Answer::Fail
        }))
    });
    let copying = copier(&from, &to, options(rebuild));
    let name = name();
    tokio::select! {
        _ = copying.copy(&name) => {}
        () = killed.notified() => {}
    }
    drop(copying);
    gone.send_replace(true);
    memory.clear_hook();
    // A power cut loses what was put and not flushed.
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
    let next = copier(&from, &to, options(rebuild)).copy(&name).await;
    assert_eq!(next.error_text(), None, "the next run after {at}");
    assert_eq!(published(&memory).await, done);
    assert_sound(&memory).await;
    *hit.lock().unwrap()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn copy_that_stops_at_any_operation_is_finished_by_the_next(
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
async fn copy_of_diverged_origin_is_refused_unless_allowed() {
    let (_, newer) = mirror(&[V1, V2]).await;
    let (_, other) = mirror(&[&[("else", 1)]]).await;
    let (memory, to) = mirror(&[]).await;
    copier(&newer, &to, options(true)).copy(&name()).await;
    let before = published(&memory).await;
    for (rollback, diverged) in [(false, false), (true, false), (false, true)] {
        let options = SyncOptions {
            rollback,
            diverged,
            ..options(true)
        };
        let refused = copier(&other, &to, options).copy(&name()).await;
        assert_eq!(refused.outcome, Outcome::Refused);
        assert_eq!(published(&memory).await, before);
    }
    let allowed = SyncOptions {
        rollback: true,
        diverged: true,
        ..options(true)
    };
    let taken = copier(&other, &to, allowed).copy(&name()).await;
    assert_eq!((taken.error_text(), taken.outcome), (None, Outcome::Published));
    assert_sound(&memory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_of_catalog_beyond_content_bytes_is_refused() {
    let (_, newer) = mirror(&[V1]).await;
    let size = current(&newer, &name()).await.unwrap().size;
    let (memory, to) = mirror(&[]).await;
    let limited = |content_bytes| SyncOptions {
        content_bytes,
        ..options(true)
    };
    let refused = copier(&newer, &to, limited(size - 1)).copy(&name()).await;
    let text = refused.error_text().unwrap_or_default();
    assert!(text.contains("exceeds the limit contentBytes"), "{text}");
    assert!(memory.objects().keys().all(|key| !matches!(key, Key::Current(_))));
    let taken = copier(&newer, &to, limited(size)).copy(&name()).await;
    assert_eq!((taken.error_text(), taken.outcome), (None, Outcome::Published));
}

/// An edge of a CDN may serve an earlier state than the one that the last copy came from.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_lagging_origin_is_unchanged_unless_rollback_is_allowed() {
    let (_, edge) = mirror(&[V1]).await;
    let (_, origin) = mirror(&[V1, V2]).await;
    let (memory, to) = mirror(&[]).await;
    copier(&origin, &to, options(true)).copy(&name()).await;
    let before = published(&memory).await;
    let lagging = copier(&edge, &to, options(true)).copy(&name()).await;
    assert_eq!((lagging.error_text(), lagging.outcome), (None, Outcome::Unchanged));
    assert_eq!(lagging.serial, Some(2));
    assert_eq!(published(&memory).await, before);
    let allowed = SyncOptions {
        rollback: true,
        ..options(true)
    };
    let taken = copier(&edge, &to, allowed).copy(&name()).await;
    assert_eq!((taken.error_text(), taken.outcome), (None, Outcome::Published));
    assert_eq!(current(&to, &name()).await.unwrap().serial, 1);
    assert_sound(&memory).await;
}

/// A killed copy or a failing disk may leave anything under the keys of the new state.
#[tokio::test(flavor = "multi_thread")]
async fn copy_replaces_damaged_leftovers() {
    let (original, from) = mirror(&[V1]).await;
    for entry in snapshot(&from).await.objects() {
        let (memory, to) = mirror(&[]).await;
        put_raw(&to, &entry.key(), b"something else".to_vec()).await;
        let report = copier(&from, &to, options(true)).copy(&name()).await;
        assert_eq!(report.error_text(), None, "{}", entry.key());
        assert_eq!(report.repaired, [entry.key().to_string()]);
        assert_eq!(published(&memory).await, published(&original).await);
    }
}

/// Only the damaged object is made or fetched again.
#[rstest]
#[case::moved(false)]
#[case::rebuilt(true)]
#[tokio::test(flavor = "multi_thread")]
async fn copy_with_recheck_replaces_damaged_objects_of_the_published_state(#[case] rebuild: bool) {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    copier(&from, &to, options(rebuild)).copy(&name()).await;
    for entry in snapshot(&from).await.objects() {
        memory.corrupt(&entry.key(), &b"damaged"[..]);
        let recheck = SyncOptions {
            recheck: true,
            ..options(rebuild)
        };
        let report = copier(&from, &to, recheck).copy(&name()).await;
        assert_eq!((report.error_text(), report.outcome), (None, Outcome::Unchanged));
        assert_eq!(report.repaired, [entry.key().to_string()]);
        let made = rebuild && entry.object.kind != Kind::Package;
        assert_eq!(report.rebuilt.objects, u64::from(made), "{}", entry.key());
        assert_eq!(published(&memory).await, published(&original).await);
    }
}

/// An object of the origin that is not what its key says gets no key in the store.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_damaged_origin_fails() {
    let (_, clean) = mirror(&[V1]).await;
    for entry in snapshot(&clean).await.objects() {
        let (original, from) = mirror(&[V1]).await;
        original.corrupt(&entry.key(), vec![0; entry.object.digest.size as usize]);
        let (memory, to) = mirror(&[]).await;
        let report = copier(&from, &to, options(false)).copy(&name()).await;
        assert_eq!(report.outcome, Outcome::Failed);
        let text = report.error_text().unwrap();
        assert!(text.contains(&entry.key().to_string()), "{text}");
        assert!(!memory.objects().contains_key(&entry.key()));
        assert!(!memory.objects().contains_key(&Key::Current(name())));
    }
}

/// Another version of this program, or of its compressor, makes another image, which cannot be made here.
#[tokio::test(flavor = "multi_thread")]
async fn copy_fetches_image_that_cannot_be_rebuilt() {
    let (original, from) = mirror(&[V1]).await;
    let plain = snapshot(&from).await;
    let layer = plain.image.clone().unwrap().layer.with_kind(Kind::Blob).key();
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(&original.objects()[&layer][..])
        .read_to_end(&mut tar)
        .unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(&tar).unwrap();
    let other = put_image(&from, encoder.finish().unwrap(), Sha256::of(&tar)).await;
    let image = Some(other.clone());
    republish(&from, &Snapshot { image, ..plain }).await;
    let index = remake_image_index(&from).await;

    let (memory, to) = mirror(&[]).await;
    let report = copier(&from, &to, options(true)).copy(&name()).await;
    assert_eq!((report.error_text(), report.outcome), (None, Outcome::Published));
    let layer = other.layer.with_kind(Kind::Blob).key();
    assert_eq!(report.not_rebuilt, [layer, index].map(|key| key.to_string()));
    assert_eq!(report.rebuilt.objects, DERIVED - 2);
    assert_eq!(published(&memory).await, published(&original).await);
    assert_sound(&memory).await;
}

/// The layer is right, and the Snapshot records another hash for the tar archive in it.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_image_that_contradicts_its_lines_fails() {
    let (_, from) = mirror(&[V1]).await;
    let plain = snapshot(&from).await;
    let layer = plain.image.as_ref().unwrap().layer;
    let documents = oci::Documents::new(layer, Sha256::of(b"another tar"));
    let image = Some(documents.image(layer, Sha256::of(b"another tar")));
    republish(&from, &Snapshot { image, ..plain }).await;
    let (memory, to) = mirror(&[]).await;
    let report = copier(&from, &to, options(true)).copy(&name()).await;
    assert_eq!(report.outcome, Outcome::Failed);
    let layer = layer.with_kind(Kind::Blob).key().to_string();
    assert!(
        report.error_text().unwrap().contains("of the origin is damaged"),
        "{report:?} {layer}"
    );
    assert!(!memory.objects().contains_key(&Key::Current(name())));
}

/// Every object has the right bytes for its key, and the Snapshot says something wrong about them.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_snapshot_that_contradicts_its_lines_fails() {
    type Forgery = fn(&mut Snapshot);
    let forgeries: [(&str, Forgery); 6] = [
        ("counts", |snapshot| {
            snapshot.packages[0].metas += 1;
            snapshot.packages[1].metas -= 1;
        }),
        ("total count", |snapshot| snapshot.metas += 1),
        ("total size", |snapshot| snapshot.size += 1),
        ("package name", |snapshot| snapshot.packages[0].name = "a".into()),
        ("order of packages", |snapshot| snapshot.packages.swap(0, 1)),
        ("left out package", |snapshot| {
            let gone = snapshot.packages.remove(0);
            snapshot.metas -= gone.metas;
            snapshot.size -= gone.lines.size;
        }),
    ];
    for rebuild in [false, true] {
        for (case, forge) in forgeries {
            let (_, from) = mirror(&[V1]).await;
            let mut changed = snapshot(&from).await;
            forge(&mut changed);
            republish(&from, &changed).await;
            let (memory, to) = mirror(&[]).await;
            let report = copier(&from, &to, options(rebuild)).copy(&name()).await;
            assert_eq!(report.outcome, Outcome::Failed, "{case}");
            assert!(!memory.objects().contains_key(&Key::Current(name())), "{case}");
        }
    }
}

/// A Snapshot may name any index. One of other lines is refused, also if the store has it already.
#[rstest]
#[case::moved(false)]
#[case::rebuilt(true)]
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_index_that_contradicts_its_lines_fails(#[case] rebuild: bool) {
    let (_, from) = mirror(&[V2, V1]).await;
    let (_, second) = mirror(&[V2]).await;
    let index = snapshot(&second).await.index;
    let changed = Snapshot {
        index,
        ..snapshot(&from).await
    };
    republish(&from, &changed).await;
    for to_has_it in [false, true] {
        let (memory, to) = mirror(if to_has_it { &[V2] } else { &[] }).await;
        let before = published(&memory).await;
        let report = copier(&from, &to, options(rebuild)).copy(&name()).await;
        assert_eq!(report.outcome, Outcome::Failed);
        assert_eq!(published(&memory).await, before);
    }
}

/// A catalog may be published without an image, and so is its copy.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_snapshot_without_image_has_no_image() {
    let (original, from) = mirror(&[V1]).await;
    let without = Snapshot {
        image: None,
        ..snapshot(&from).await
    };
    republish(&from, &without).await;
    let (memory, to) = mirror(&[]).await;
    let report = copier(&from, &to, options(true)).copy(&name()).await;
    assert_eq!((report.error_text(), report.rebuilt.objects), (None, 4));
    assert_eq!(published(&memory).await, published(&original).await);
    let is_blob = |key: &Key| matches!(key, Key::Object(Kind::Blob, _));
    assert!(!memory.objects().keys().any(is_blob));
}

/// A newer compressor makes other bytes of the same lines, under another key. Both states stay whole.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_recompressed_shard_leaves_the_earlier_shard_alone() {
    let (_, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    publish(&to, &"other".parse().unwrap(), V1).await;
    let before = memory.objects();
    let mut changed = snapshot(&from).await;
    let key = changed.packages[0].stored.with_kind(Kind::Package).key();
    let lines = zstd::decode_all(&before[&key][..]).unwrap();
    let bytes = zstd::bulk::compress(&lines, 1).unwrap();
    changed.packages[0].stored = put(&from, Kind::Package, bytes).await;
    assert_ne!(changed.packages[0].stored.with_kind(Kind::Package).key(), key);
    republish(&from, &changed).await;
    let report = copier(&from, &to, options(true)).copy(&name()).await;
    assert_eq!((report.error_text(), report.outcome), (None, Outcome::Published));
    assert_sound(&memory).await;
    let other = publish::verify(&*to, &"other".parse().unwrap()).await.unwrap();
    assert_eq!(other.findings, []);
    let after = memory.objects();
    let immutable = before.iter().filter(|(key, _)| key.is_immutable());
    immutable.for_each(|(key, bytes)| assert_eq!(after[key], bytes, "{key}"));
}

fn names(names: &[&str]) -> Vec<CatalogName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// One catalog whose origin never answers holds one place, and the others go on.
#[tokio::test(flavor = "multi_thread")]
async fn copy_all_goes_on_while_one_catalog_hangs() {
    let (original, from) = mirror(&[]).await;
    let names = names(&["a", "b", "c", "d", "e", "f"]);
    for name in &names {
        publish(&from, name, V1).await;
    }
    original.set_hook(|call, _| match &call.key {
        Some(Key::Current(name)) if name.as_str() == "a" => Answer::Wait(Box::pin(std::future::pending())),
        _ => Answer::GoOn,
    });
    let (memory, to) = mirror(&[]).await;
    let two = SyncOptions {
        catalogs_in_flight: 2,
        ..options(true)
    };
    let copier = copier(&from, &to, two);
    let others = async {
        while names[1..]
            .iter()
            .any(|name| !memory.objects().contains_key(&Key::Current(name.clone())))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = copier.copy_all(&names) => panic!("one of the catalogs hangs"),
        done = tokio::time::timeout(Duration::from_secs(60), others) => done.expect("the others are copied"),
    }
}

/// A mirror lists a catalog that it does not serve, because its availability is `Unavailable`.
#[tokio::test(flavor = "multi_thread")]
async fn copy_listed_passes_over_catalogs_that_the_origin_does_not_serve() {
    let (_, from) = mirror(&[V1]).await;
    let listed: Catalogs = names(&["demo", "unavailable"]).into_iter().collect();
    put_raw(&from, &Key::Catalogs, listed.to_bytes()).await;
    let (memory, to) = mirror(&[]).await;
    let copier = copier(&from, &to, options(true));
    let reports = copier.copy_listed().await.unwrap();
    let outcomes: Vec<_> = reports
        .iter()
        .map(|report| (report.outcome, report.not_served))
        .collect();
    assert_eq!(outcomes, [(Outcome::Published, false), (Outcome::Unchanged, true)]);
    let unavailable = names(&["unavailable"]);
    assert!(!memory.objects().contains_key(&Key::Status(unavailable[0].clone())));
    // A name that the user asks for has to be there.
    let report = &copier.copy_all(&unavailable).await[0];
    assert!(
        report.error_text().unwrap().contains("no catalog unavailable"),
        "{report:?}"
    );
}

/// An origin that is not trusted may list any number of names.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_unsigned_catalogs_writes_nothing_for_new_names() {
    let (_, from) = mirror(&[]).await;
    let names = names(&["a", "b", "c"]);
    for name in &names {
        publish(&from, name, V1).await;
    }
    let (memory, to) = mirror(&[]).await;
    let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
    let signer = Signer::new(vec![key], Vec::new());
    let signed = signer.sign(&names[0], current(&from, &names[0]).await.unwrap());
    write_pointer(&from, &names[0], &signed).await;
    let trusting = SyncOptions {
        trust: Some(signer.trust().clone()),
        ..options(true)
    };
    let reports = copier(&from, &to, trusting.clone()).copy_listed().await.unwrap();
    let outcomes: Vec<_> = reports.iter().map(|report| report.outcome).collect();
    assert_eq!(outcomes, [Outcome::Published, Outcome::Refused, Outcome::Refused]);
    let keys: Vec<Key> = memory
        .written()
        .into_iter()
        .filter(|key| key.catalog().is_some())
        .collect();
    assert_eq!(keys, [Key::Current(names[0].clone()), Key::Status(names[0].clone())]);

    // A catalog that the store has gets the refusal into its status.
    let unsigned = CurrentBuilder::new(&snapshot_of(&from, &names[0]).await)
        .serial(2)
        .build();
    write_pointer(&from, &names[0], &unsigned).await;
    memory.take_log();
    let refused = copier(&from, &to, trusting).copy(&names[0]).await;
    assert_eq!(refused.outcome, Outcome::Refused);
    assert_eq!(memory.written(), [Key::Status(names[0].clone())]);
}

async fn snapshot_of(store: &Arc<dyn Store>, name: &CatalogName) -> Snapshot {
    let current = current(store, name).await.unwrap();
    store::read_stored(&**store, &current.snapshot.digest).await.unwrap()
}

/// A pointer of another format belongs to another program; a damaged one is replaced.
#[tokio::test(flavor = "multi_thread")]
async fn copy_refuses_a_store_of_another_format_and_replaces_a_damaged_pointer() {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let key = Key::Current(name());
    for version in [1, 99] {
        let pointer = format!("{{\"formatVersion\":{version}}}").into_bytes();
        put_raw(&to, &key, pointer.clone()).await;
        let refused = copier(&from, &to, options(true)).copy(&name()).await;
        assert!(refused.error_text().unwrap().contains("format version"), "{refused:?}");
        assert_eq!(memory.objects()[&key], pointer);
    }
    put_raw(&to, &key, b"damaged".to_vec()).await;
    let replaced = copier(&from, &to, options(true)).copy(&name()).await;
    assert_eq!((replaced.error_text(), replaced.outcome), (None, Outcome::Published));
    assert_eq!(memory.objects()[&key], original.objects()[&key]);
    assert_sound(&memory).await;
}

/// Without `catalogs.json`, the pointers tell the names. The copy lists them again.
#[tokio::test(flavor = "multi_thread")]
async fn copy_restores_a_lost_list_of_catalogs() {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    copier(&from, &to, options(true)).copy(&name()).await;
    let list = memory.objects()[&Key::Catalogs].clone();
    memory.lose(&Key::Catalogs);
    original.lose(&Key::Catalogs);
    let reports = copier(&from, &to, options(true)).copy_listed().await.unwrap();
    assert_eq!(reports[0].outcome, Outcome::Unchanged);
    let names = |bytes: &[u8]| Catalogs::from_bytes(bytes).unwrap().catalogs;
    assert_eq!(names(&memory.objects()[&Key::Catalogs]), names(&list));
}
