//! Archives that change between requests and within one.

use testkit::{FileAnswer, digest};

use super::{PATH, host, two_folders};
use crate::kit::{client, failed, read, verdict};

#[tokio::test]
async fn unchanged_archive_costs_one_304_and_changed_one_is_downloaded_once() {
    let host = host(&two_folders()).await;
    let archive = two_folders().archive();
    let (_, report) = host.pull("").await.unwrap();
    let traffic = (report.traffic.bytes, report.traffic.requests);
    assert_eq!(traffic, (archive.len() as u64, 1));
    let first = host.images.clone().resolve(&host.source("")).await.unwrap();
    assert_eq!(first.as_str(), digest(&archive));
    let of_part = host.resolve("#b").await.unwrap();
    assert_ne!(first, of_part, "another folder is another catalog");
    assert_ne!(of_part, host.resolve("#a").await.unwrap());
    assert_eq!(host.server.statuses(), [200, 304, 304, 304]);
    host.server
        .put(PATH, two_folders().file("c", "c").archive());
    assert_ne!(host.resolve("").await.unwrap(), first);
    assert_eq!(host.files("#b").await.unwrap(), ["y.yaml=y"]);
    assert_eq!(host.server.statuses()[4..], [200, 304]);
}

#[tokio::test]
async fn archive_without_version_is_downloaded_each_time() {
    let host = host(&two_folders()).await;
    let mut found = Vec::new();
    for archive in [two_folders(), two_folders().file("c", "c")] {
        host.server.put_tagged(PATH, archive.archive(), None);
        found.push(host.resolve("").await.unwrap());
    }
    assert_ne!(found[0], found[1]);
    assert_eq!(host.server.statuses(), [200, 200]);
}

/// Resolve and read are two requests if the bytes are gone between them, as after a restart.
#[tokio::test]
async fn change_between_resolve_and_read_is_an_error_of_its_own() {
    let host = host(&two_folders()).await;
    let (source, other) = (host.source(""), client(host.server.host()));
    let digest = other.resolve(&source).await.unwrap();
    host.server
        .put(PATH, two_folders().file("c", "c").archive());
    failed(read(&host.images, &source, &digest).await, "changed");
    assert_eq!(host.files("").await.unwrap().len(), 3);
}

/// The rest of another version behind the start of the first one would be an archive that never
/// was.
#[tokio::test]
async fn archive_that_changes_while_it_is_sent_is_read_again_from_its_start() {
    let host = host(&two_folders().plain()).await;
    let new = two_folders().file("a/x2.yaml", "2").plain().archive();
    host.server.script(PATH, FileAnswer::Cut(700));
    let changing = async {
        while host.server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        host.server.put(PATH, new.clone());
    };
    let (found, ()) = tokio::join!(host.resolve(""), changing);
    assert_eq!(found.unwrap().as_str(), digest(&new));
    assert_eq!(host.server.statuses(), [200, 200]);
}

/// Bytes of two versions in one body, as of a file that is written while it is sent.
#[tokio::test]
async fn mixed_versions_are_refused_and_their_version_is_forgotten() {
    let host = host(&two_folders()).await;
    let version = |word: &str| {
        let lines: String = (0..2000)
            .map(|line| format!("{word} {}\n", line * line))
            .collect();
        two_folders().file("c", lines).archive()
    };
    let (old, new) = (version("old"), version("new"));
    let mixed = [&old[..old.len() / 2], &new[old.len() / 2..]].concat();
    host.server.put_tagged(PATH, mixed, Some("\"1\""));
    let found = verdict(&host.pull("").await);
    // The garbage can reach the sink before the checksum is compared.
    assert!(found.starts_with("archive: ") || found == "sink", "{found}");
    // A server that has written the tag of the new version on the mixed bytes answers 304 if it is
    // asked for a change.
    host.server.put_tagged(PATH, new, Some("\"1\""));
    assert_eq!(host.files("").await.unwrap().len(), 3);
}
