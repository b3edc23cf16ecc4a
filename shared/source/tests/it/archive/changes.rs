//! Archives that change between requests and within one.

use std::sync::Arc;

use catalog_mirror_source::{Error, TreeFault, UnpackError};
use testkit::{FileAnswer, FileServer};

use super::{PATH, pull, source, two_folders};
use crate::kit::{Collect, chain, client, read};

#[tokio::test]
async fn unchanged_archive_costs_one_304_and_changed_one_is_downloaded_once() {
    let server = FileServer::start().await;
    let archive = two_folders().archive();
    server.put(PATH, archive.clone());
    let (images, whole, part) = (client(server.host()), source(&server, ""), source(&server, "#b"));
    let (_, report) = pull(&images, &whole).await.unwrap();
    assert_eq!(
        (report.traffic.bytes, report.traffic.requests),
        (archive.len() as u64, 1)
    );
    let first = images.clone().resolve(&whole).await.unwrap();
    assert_eq!(first.as_str(), testkit::digest(&archive));
    let of_part = images.resolve(&part).await.unwrap();
    assert_ne!(first, of_part, "another folder is another catalog");
    assert_ne!(of_part, images.resolve(&source(&server, "#a")).await.unwrap());
    assert_eq!(server.statuses(), [200, 304, 304, 304]);
    server.put(PATH, two_folders().file("c", "c").archive());
    assert_ne!(images.resolve(&whole).await.unwrap(), first);
    let (sink, _) = pull(&images, &part).await.unwrap();
    assert_eq!(sink.list(), ["y.yaml=y"]);
    assert_eq!(server.statuses()[4..], [200, 304]);
}

#[tokio::test]
async fn archive_without_version_is_downloaded_each_time() {
    let server = FileServer::start().await;
    server.put_tagged(PATH, two_folders().archive(), None);
    let images = client(server.host());
    let first = images.resolve(&source(&server, "")).await.unwrap();
    server.put_tagged(PATH, two_folders().file("c", "c").archive(), None);
    assert_ne!(images.resolve(&source(&server, "")).await.unwrap(), first);
    assert_eq!(server.statuses(), [200, 200]);
}

/// Resolve and read are two requests if the bytes are gone between them, as after a restart.
#[tokio::test]
async fn change_between_resolve_and_read_is_an_error_of_its_own() {
    let server = FileServer::start().await;
    server.put(PATH, two_folders().archive());
    let source = source(&server, "");
    let digest = client(server.host()).resolve(&source).await.unwrap();
    server.put(PATH, two_folders().file("c", "c").archive());
    let images = client(server.host());
    let error = read(&images, &source, &digest, Collect::default()).await.unwrap_err();
    let is_changed = matches!(&error, Error::Tree { source, .. } if matches!(source, TreeFault::Changed));
    assert!(is_changed, "{}", chain(&error));
    let (sink, _) = pull(&images, &source).await.unwrap();
    assert_eq!(sink.files.len(), 3);
}

/// The rest of another version behind the start of the first one would be an archive that never was.
#[tokio::test]
async fn archive_that_changes_while_it_is_sent_is_read_again_from_its_start() {
    let server = FileServer::start().await;
    let (old, new) = (two_folders().plain(), two_folders().file("a/x2.yaml", "2").plain());
    server.put(PATH, old.archive());
    server.script(PATH, FileAnswer::Cut(700));
    let server = Arc::new(server);
    let images = client(server.host());
    let changing = tokio::spawn({
        let (server, bytes) = (Arc::clone(&server), new.archive());
        async move {
            while server.requests().is_empty() {
                tokio::task::yield_now().await;
            }
            server.put(PATH, bytes);
        }
    });
    let digest = images.resolve(&source(&server, "")).await.unwrap();
    changing.await.unwrap();
    assert_eq!(digest.as_str(), testkit::digest(&new.archive()));
    assert_eq!(server.statuses(), [200, 200]);
}

/// Bytes of two versions in one body, as of a file that is written while it is sent.
#[tokio::test]
async fn mixed_versions_are_refused_and_their_version_is_forgotten() {
    let server = FileServer::start().await;
    let version = |word: &str| {
        let lines: String = (0..2000).map(|line| format!("{word} {}\n", line * line)).collect();
        two_folders().file("c", lines).archive()
    };
    let (old, new) = (version("old"), version("new"));
    let mixed = [&old[..old.len() / 2], &new[old.len() / 2..]].concat();
    server.put_tagged(PATH, mixed, Some("\"1\""));
    let images = client(server.host());
    let error = pull(&images, &source(&server, "")).await.unwrap_err();
    // The garbage can reach the sink before the checksum is compared.
    assert!(
        matches!(error, Error::Tree { .. } | Error::Unpack(UnpackError::Sink(_))),
        "{}",
        chain(&error)
    );
    // A server that has written the tag of the new version on the mixed bytes answers 304 if it is asked for a change.
    server.put_tagged(PATH, new, Some("\"1\""));
    assert_eq!(pull(&images, &source(&server, "")).await.unwrap().0.files.len(), 3);
}
