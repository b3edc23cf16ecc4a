//! Copies through an archive.

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::Arc;
use std::time::SystemTime;

use model::{Document, Key, Outcome};
use publish::ValidationMode;
use store::Store;
use sync::{
    Archive, ArchiveError, Importer, Pack, PackOptions, Receipt, SyncError, SyncOptions,
    SyncReport, receipt,
};

use crate::kit::{
    DECODED, DERIVED, V1, V2, assert_sound, mirror, name, poll, publish, publish_broken, published,
    remake_image_index, republish_stored, snapshot,
};

/// Exports the catalog and returns the volumes.
#[expect(clippy::disallowed_methods, reason = "the archive is one of the test")]
pub(crate) async fn export(store: &Arc<dyn Store>, options: PackOptions) -> Vec<Vec<u8>> {
    let pack = Pack::plan(store.clone(), &[name()], &options)
        .await
        .unwrap();
    tokio::task::spawn_blocking(move || {
        let volumes = 1..=pack.manifest().volumes;
        volumes
            .map(|volume| {
                let mut bytes = Vec::new();
                pack.write(volume, &mut bytes).unwrap();
                bytes
            })
            .collect()
    })
    .await
    .unwrap()
}

pub(crate) fn packed(whole: bool) -> PackOptions {
    PackOptions {
        whole,
        ..PackOptions::default()
    }
}

fn since(since: Receipt) -> PackOptions {
    PackOptions {
        since,
        ..PackOptions::default()
    }
}

pub(crate) async fn open(volumes: &[Vec<u8>]) -> Result<Arc<Archive>, SyncError> {
    let named = |(bytes, number): (&Vec<u8>, u32)| (format!("volume {number}"), file(bytes));
    Archive::open(volumes.iter().zip(1..).map(named).collect()).await
}

/// Returns the reason for which volumes are refused.
async fn refusal(volumes: &[Vec<u8>]) -> String {
    match open(volumes).await {
        Err(SyncError::Archive(ArchiveError::Refused(reason))) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_with_an_object_that_does_not_decode_is_refused() {
    for kind in DECODED {
        let (_, from) = mirror(&[V1]).await;
        let key = publish_broken(&from, kind).await;
        let volumes = export(&from, packed(true)).await;
        let error = open(&volumes).await.unwrap_err();
        let text = model::text::chain(&error);
        assert!(text.contains(&key.to_string()), "{text}");
        assert!(text.contains("does not decode"), "{text}");
        // The receiving side makes other bytes than those that are recorded.
        let (memory, to) = mirror(&[]).await;
        let report = import(&export(&from, packed(false)).await, &to).await;
        let error = report.unwrap().error.unwrap();
        assert!(error.contains(&key.to_string()), "{error}");
        assert!(!memory.objects().contains_key(&key));
    }
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

pub(crate) async fn import(volumes: &[Vec<u8>], to: &Arc<dyn Store>) -> Result<SyncReport, String> {
    let archive = open(volumes)
        .await
        .map_err(|error| model::text::chain(&error))?;
    let importer = Importer::new(archive, to.clone(), SyncOptions::default());
    let reports = importer
        .run()
        .await
        .map_err(|error| model::text::chain(&error))?;
    Ok(reports.into_iter().next().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn import_of_export_is_the_original_byte_for_byte_with_its_findings() {
    let (original, from) = mirror(&[]).await;
    let counts = poll(&from, &name(), V1, ValidationMode::Warn)
        .await
        .validation;
    assert!(counts.is_some_and(|counts| counts.errors > 0));
    for whole in [false, true] {
        let (memory, to) = mirror(&[]).await;
        let volumes = export(&from, packed(whole)).await;
        let report = import(&volumes, &to).await.unwrap();
        assert_eq!(
            (report.error.clone(), report.outcome),
            (None, Outcome::Published)
        );
        // The findings are made again, too.
        assert_eq!(report.rebuilt.objects, if whole { 0 } else { DERIVED + 1 });
        assert_eq!(report.validation, counts);
        assert_eq!(published(&memory).await, published(&original).await);
        assert_sound(&memory).await;
        memory.take_log();
        assert_eq!(
            import(&volumes, &to).await.unwrap().outcome,
            Outcome::Unchanged
        );
        assert_eq!(
            memory.written(),
            [Key::Status(name())],
            "importing twice is harmless"
        );
    }
}

/// A whole archive since a receipt leaves parts of the image out, and a whole archive is not
/// completed by rebuilding.
#[tokio::test(flavor = "multi_thread")]
async fn import_of_whole_archive_refuses_missing_image_parts() {
    let (_, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let options = PackOptions {
        whole: true,
        since: receipt(&*from, &[name()]).await.unwrap(),
        ..PackOptions::default()
    };
    let volumes = export(&from, options).await;
    let lacks = import(&volumes, &to).await.unwrap_err();
    assert!(
        lacks.contains("lacks 14 objects"),
        "four shards and ten blobs: {lacks}"
    );
    assert!(memory.written().is_empty());
}

/// Another version of this program writes images with other documents.
#[tokio::test(flavor = "multi_thread")]
async fn import_of_image_that_cannot_be_rebuilt_needs_a_whole_archive() {
    let (original, from) = mirror(&[V1]).await;
    let index = remake_image_index(&from).await;
    for whole in [false, true] {
        let (memory, to) = mirror(&[]).await;
        let report = import(&export(&from, packed(whole)).await, &to)
            .await
            .unwrap();
        if whole {
            assert_eq!(report.outcome, Outcome::Published);
            assert_eq!(published(&memory).await, published(&original).await);
        } else {
            let error = report.error.clone().unwrap();
            let parts = [&*index.to_string(), "export with --whole"];
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            assert!(published(&memory).await.is_empty());
        }
    }
}

/// Another version of this program made the folder that a site gets.
#[tokio::test(flavor = "multi_thread")]
async fn archive_in_a_folder_is_imported_by_another_version() {
    let (original, from) = mirror(&[V1]).await;
    remake_image_index(&from).await;
    let folder = tempfile::tempdir().unwrap();
    let archive = sync::archive_into(from, &[name()], folder.path(), SystemTime::now())
        .await
        .unwrap();
    let path = folder.path().join(archive);
    let (memory, to) = mirror(&[]).await;
    let report = import(&[std::fs::read(path).unwrap()], &to).await.unwrap();
    assert_eq!(report.outcome, Outcome::Published);
    assert_eq!(published(&memory).await, published(&original).await);
}

/// A later version may write fields into a Snapshot that this one does not know. Its name is the
/// hash of its bytes, not of the fields that are understood.
#[tokio::test(flavor = "multi_thread")]
async fn snapshot_with_unknown_fields_is_copied_byte_for_byte() {
    let (original, from) = mirror(&[V1]).await;
    let changed = snapshot(&from).await;
    let text = String::from_utf8(changed.to_bytes()).unwrap();
    let text = text.replacen('{', "{\n  \"later\": true,", 1);
    let stored = zstd::bulk::compress(text.as_bytes(), 3).unwrap();
    republish_stored(&from, &changed, stored).await;
    assert_sound(&original).await;
    let (memory, to) = mirror(&[]).await;
    import(&export(&from, PackOptions::default()).await, &to)
        .await
        .unwrap();
    assert_eq!(published(&memory).await, published(&original).await);
    assert_sound(&memory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn export_since_receipt_or_content_holds_new_objects_only() {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    import(&export(&from, PackOptions::default()).await, &to)
        .await
        .unwrap();
    let receipt = receipt(&*to, &[name()]).await.unwrap();
    let content = snapshot(&to).await.content_hash;
    publish(&from, &name(), V2).await;
    let full = export(&from, PackOptions::default()).await;
    let by_receipt = export(&from, since(receipt)).await;
    let by_hash = Receipt::of_contents(&*from, &[name()], &[content])
        .await
        .unwrap();
    let by_content = export(&from, since(by_hash)).await;
    assert_eq!(by_receipt, by_content);
    assert!(by_receipt[0].len() < full[0].len());

    let (empty, elsewhere) = mirror(&[]).await;
    let lacks = import(&by_receipt, &elsewhere).await.unwrap_err();
    assert!(lacks.contains("lacks 2 objects"), "{lacks}");
    assert!(empty.written().is_empty());

    import(&by_receipt, &to).await.unwrap();
    assert_eq!(published(&memory).await, published(&original).await);
    assert_sound(&memory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn import_takes_volumes_in_any_order_and_refuses_missing_ones() {
    let (original, from) = mirror(&[V1]).await;
    let small = PackOptions {
        volume_bytes: Some(10 << 10),
        ..PackOptions::default()
    };
    let mut volumes = export(&from, small).await;
    assert!(volumes.len() > 1);
    assert!(volumes.iter().all(|volume| volume.len() <= 10 << 10));
    volumes.reverse();
    for left_out in 0..volumes.len() {
        let mut some = volumes.clone();
        some.remove(left_out);
        let (of, missing) = (volumes.len(), volumes.len() - left_out);
        let expected = format!("the archive has {of} volumes, and volume {missing} was not given");
        assert_eq!(refusal(&some).await, expected);
    }
    let twice = [&volumes[..], &volumes[..1]].concat();
    let expected = format!("volume {} was given twice", volumes.len());
    assert_eq!(refusal(&twice).await, expected);
    let (memory, to) = mirror(&[]).await;
    import(&volumes, &to).await.unwrap();
    assert_eq!(published(&memory).await, published(&original).await);

    let (_, other) = mirror(&[V2]).await;
    let foreign = export(&other, PackOptions::default()).await.remove(0);
    let refused = refusal(&[volumes[0].clone(), foreign]).await;
    assert!(
        refused.ends_with("belongs to another archive than the first file"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_bit_or_cut_is_refused_or_changes_nothing() {
    let (original, from) = mirror(&[V1]).await;
    let goal = published(&original).await;
    let volume = export(&from, PackOptions::default()).await.remove(0);
    // Every byte of the first blocks, of the last ones, and a sample of everything between:
    // headers, documents, shards, padding, the end. Nothing reads the padding, and the checksum of
    // a header may begin with spaces, so some bits may flip.
    let mut harmless = 0;
    let edge = 2048;
    let sample = (0..volume.len())
        .filter(|at| *at < edge || *at > volume.len() - edge || at.is_multiple_of(7));
    for at in sample {
        let mut flipped = volume.clone();
        flipped[at] ^= 1 << (at % 8);
        if let Ok(archive) = open(&[flipped]).await {
            harmless += 1;
            if volume[at] != 0 || harmless % 50 == 0 {
                let (memory, to) = mirror(&[]).await;
                Importer::new(archive, to, SyncOptions::default())
                    .run()
                    .await
                    .unwrap();
                assert_eq!(published(&memory).await, goal, "byte {at}");
            }
        }
    }
    assert!(harmless > 0);
    for length in (0..volume.len()).step_by(101).chain([volume.len() - 1]) {
        assert!(
            open(&[volume[..length].to_vec()]).await.is_err(),
            "cut at {length}"
        );
    }
    assert!(
        open(&[[&volume[..], b"x"].concat()]).await.is_err(),
        "longer"
    );
    assert!(open(&[volume]).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn import_of_earlier_state_is_refused_before_any_write() {
    let (_, from) = mirror(&[V1]).await;
    let old = export(&from, PackOptions::default()).await;
    publish(&from, &name(), V2).await;
    let (memory, to) = mirror(&[]).await;
    import(&export(&from, PackOptions::default()).await, &to)
        .await
        .unwrap();
    memory.take_log();
    let refused = import(&old, &to).await.unwrap_err();
    assert!(refused.contains("serial 1"), "{refused}");
    assert!(memory.written().is_empty());
    let settings = SyncOptions {
        rollback: true,
        ..SyncOptions::default()
    };
    let importer = Importer::new(open(&old).await.unwrap(), to, settings);
    let reports = importer.run().await.unwrap();
    assert_eq!(reports[0].outcome, Outcome::Published);
    assert_sound(&memory).await;
}
