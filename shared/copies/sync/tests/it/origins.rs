//! Copies from origins whose objects are damaged, contradict each other, or were made by another
//! program.
#![expect(clippy::print_stdout, reason = "a failure tells its case")]

use std::io::{Read, Write};
use std::sync::Arc;

use model::{Key, Kind, Outcome, Sha256, Snapshot};
use rstest::rstest;
use store::Store;
use upkeep::ObjectProblem;

use crate::kit::{
    DECODED, DERIVED, V1, V2, assert_sound, copied, copy, failed_copy, mirror, name, options,
    publish, publish_broken, published, put, put_image, remake_image_index, republish, snapshot,
};
/// An object of the origin that is not what its key says gets no key in the store.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_damaged_origin_fails() {
    let (_, clean) = mirror(&[V1]).await;
    for entry in snapshot(&clean).await.objects() {
        let (original, from) = mirror(&[V1]).await;
        original.corrupt(&entry.key(), vec![0; entry.object.digest.size as usize]);
        let (memory, error) = failed_copy(&from, false).await;
        assert!(error.contains(&entry.key().to_string()), "{error}");
        assert!(!memory.objects().contains_key(&entry.key()));
    }
}

/// An object of the origin that has the right bytes for its key, and does not decode.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_origin_whose_object_does_not_decode_fails_and_verify_names_it() {
    for kind in DECODED {
        let (_, from) = mirror(&[V1, V2]).await;
        let key = publish_broken(&from, kind).await;
        for rebuild in [true, false] {
            let (memory, error) = failed_copy(&from, rebuild).await;
            assert!(error.contains(&format!("{key} of the origin")), "{error}");
            assert!(error.contains("does not decode"), "{error}");
            assert!(!memory.objects().contains_key(&key));
            // A copy that has the state before.
            let (memory, to) = mirror(&[V1]).await;
            let before = published(&memory).await;
            let report = copy(&from, &to, options(rebuild)).await;
            assert_eq!(report.outcome, Outcome::Failed, "{report:?}");
            assert!(!memory.objects().contains_key(&key));
            assert_eq!(published(&memory).await, before);
        }
        let found = upkeep::verify(&*from, &name()).await.unwrap().findings;
        let problems: Vec<_> = found
            .into_iter()
            .map(|finding| (finding.key, finding.problem))
            .collect();
        assert_eq!(problems, [(key, ObjectProblem::Content)]);
    }
}

/// The sizes of the segments tell where the next publication finds them. A copy takes them as they
/// are, and makes the same bytes whatever they say.
#[tokio::test(flavor = "multi_thread")]
async fn copy_after_a_state_with_a_wrong_record_of_segments_is_right() {
    let (_, from) = mirror(&[V1]).await;
    let forge = |snapshot: &mut Snapshot| {
        snapshot.segments[0] -= 1;
        snapshot.segments[1] += 1;
    };
    republish(&from, forge).await;
    let (memory, report) = copied(&from, options(true)).await;
    assert_eq!(report.error, None);
    let to: Arc<dyn Store> = Arc::new(memory.clone());
    publish(&from, &name(), V2).await;
    let report = copy(&from, &to, options(true)).await;
    assert_eq!((report.error, report.not_rebuilt), (None, vec![]));
    assert_sound(&memory).await;
}

/// Another version of this program, or of its compressor, makes another image, which cannot be made
/// here.
#[tokio::test(flavor = "multi_thread")]
async fn copy_fetches_image_that_cannot_be_rebuilt() {
    let (original, from) = mirror(&[V1]).await;
    let layer = snapshot(&from)
        .await
        .image
        .unwrap()
        .layer
        .with_kind(Kind::Blob)
        .key();
    let mut tar = Vec::new();
    let bytes = &original.objects()[&layer];
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_end(&mut tar)
        .unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(&tar).unwrap();
    let other = put_image(&from, encoder.finish().unwrap(), Sha256::of(&tar)).await;
    republish(&from, |snapshot| snapshot.image = Some(other.clone())).await;
    let index = remake_image_index(&from).await;

    let (memory, report) = copied(&from, options(true)).await;
    assert_eq!(
        (report.error.clone(), report.outcome),
        (None, Outcome::Published)
    );
    let layer = other.layer.with_kind(Kind::Blob).key();
    assert_eq!(
        report.not_rebuilt,
        [layer, index].map(|key| key.to_string())
    );
    assert_eq!(report.rebuilt.objects, DERIVED - 2);
    assert_eq!(published(&memory).await, published(&original).await);
    assert_sound(&memory).await;
}

/// The layer is right, and the Snapshot records another hash for the tar archive in it.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_image_that_contradicts_its_lines_fails() {
    let (_, from) = mirror(&[V1]).await;
    let forge = |snapshot: &mut Snapshot| {
        snapshot.image.as_mut().unwrap().diff_id = Sha256::of(b"another tar");
    };
    republish(&from, forge).await;
    let (_, error) = failed_copy(&from, true).await;
    assert!(error.contains("of the origin is damaged"), "{error}");
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
        ("package name", |snapshot| {
            snapshot.packages[0].name = "a".into();
        }),
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
            republish(&from, forge).await;
            println!("{case}");
            failed_copy(&from, rebuild).await;
        }
    }
}

/// A Snapshot may name any index. One of other lines is refused, also if the store has it already.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_index_that_contradicts_its_lines_fails(#[values(false, true)] rebuild: bool) {
    let (_, from) = mirror(&[V2, V1]).await;
    let (_, second) = mirror(&[V2]).await;
    let index = snapshot(&second).await.index;
    republish(&from, |snapshot| snapshot.index = index).await;
    for to_has_it in [false, true] {
        let (memory, to) = mirror(if to_has_it { &[V2] } else { &[] }).await;
        let before = published(&memory).await;
        let report = copy(&from, &to, options(rebuild)).await;
        assert_eq!(report.outcome, Outcome::Failed);
        assert_eq!(published(&memory).await, before);
    }
}

/// A catalog may be published without an image, and so is its copy.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_snapshot_without_image_has_no_image() {
    let (original, from) = mirror(&[V1]).await;
    republish(&from, |snapshot| snapshot.image = None).await;
    let (memory, report) = copied(&from, options(true)).await;
    assert_eq!((report.error.clone(), report.rebuilt.objects), (None, 5));
    assert_eq!(published(&memory).await, published(&original).await);
    let is_blob = |key: &Key| matches!(key, Key::Object(Kind::Blob, _));
    assert!(!memory.objects().keys().any(is_blob));
}

/// A newer compressor makes other bytes of the same lines, under another key. Both states stay
/// whole.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_recompressed_shard_leaves_the_earlier_shard_alone() {
    let (_, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    publish(&to, &"other".parse().unwrap(), V1).await;
    let before = memory.objects();
    let key = snapshot(&from).await.packages[0]
        .stored
        .with_kind(Kind::Package)
        .key();
    let lines = zstd::decode_all(&before[&key][..]).unwrap();
    let bytes = zstd::bulk::compress(&lines, 1).unwrap();
    let recompressed = put(&from, Kind::Package, bytes).await;
    assert_ne!(recompressed.with_kind(Kind::Package).key(), key);
    republish(&from, |snapshot| snapshot.packages[0].stored = recompressed).await;
    let report = copy(&from, &to, options(true)).await;
    assert_eq!(
        (report.error.clone(), report.outcome),
        (None, Outcome::Published)
    );
    assert_sound(&memory).await;
    let other = upkeep::verify(&*to, &"other".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(other.findings, []);
    let after = memory.objects();
    let immutable = before.iter().filter(|(key, _)| key.is_immutable());
    immutable.for_each(|(key, bytes)| assert_eq!(after[key], bytes, "{key}"));
}
