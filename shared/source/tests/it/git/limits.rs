//! Limits on packs and on what is in them.

use catalog_mirror_source::{DownloadSpace, Error, ImageLimits};
use testkit::Random;

use super::{GitHost, PATH};
use crate::kit::{chain, exceeded, limits_at};

/// One file of a thousand bytes in a folder.
fn file() -> (&'static str, String) {
    let lines: String = (0..100).map(|line| format!("{:09}\n", line * line * 7919)).collect();
    ("folder/file.yaml", lines)
}

/// Reads the file with one limit of this value. Returns the bytes received.
async fn read(name: &str, to: u64) -> Result<u64, Error> {
    let host = GitHost::with(|settings| settings.limits = limits_at(name, to)).await;
    let (path, content) = file();
    host.commit(&[(path, &content)]);
    host.pull("").await.map(|(_, pull)| pull.traffic.bytes)
}

/// Compares the limit that a read exceeds, and its place.
#[track_caller]
fn exceeds(read: Result<impl std::fmt::Debug, Error>, name: &str, value: u64) {
    let place = exceeded(read, name, value);
    assert!(place.contains(PATH), "{place}");
}

#[tokio::test]
async fn limits_of_images_hold_at_their_value() {
    let rows = [
        // The size to which git fills an archive.
        ("decompressedBytes", 10_240),
        // A folder and a file.
        ("entries", 2),
        ("fileBytes", 1000),
        ("pathBytes", 16),
        // Both paths, and 64 bytes for each.
        ("treeBytes", 22 + 2 * 64),
    ];
    for (name, at) in rows {
        let passed = read(name, at).await;
        passed.unwrap_or_else(|error| panic!("{name}: {}", chain(&error)));
        exceeds(read(name, at - 1).await, name, at - 1);
    }
    // A commit has no layers, so this is all of it.
    let stored = read("layers", 1).await.unwrap();
    // The index of the pack counts too, and its size depends on the version of git.
    assert!(read("compressedBytes", stored + 4096).await.is_ok());
    for (name, at) in [("compressedBytes", stored - 1), ("ratio", 1)] {
        exceeds(read(name, at).await, name, at);
    }
}

/// Few bytes of a pack that are many of a file.
#[tokio::test]
async fn bomb_is_refused_by_its_size() {
    let host = GitHost::start().await;
    let zeros = "\0".repeat(80 << 20);
    host.commit(&[("x.yaml", &zeros)]);
    exceeds(host.files("").await, "ratio", ImageLimits::default().ratio);
}

#[tokio::test]
async fn pack_that_is_too_large_is_cut_off_and_gives_its_space_back() {
    let space = DownloadSpace::new(4 << 20);
    let host = GitHost::with(|settings| settings.download_space = space.clone()).await;
    let mut noise = Vec::new();
    let mut random = Random::new(1);
    noise.resize_with(2 << 20, || random.number() as u8);
    let file = host.repo.object("blob", noise);
    host.point(&host.repo.commit_of_entries(&[("100644", "x.yaml", &file)]));
    exceeds(host.files("").await, "downloadBytes", 1 << 20);
    assert_eq!(space.taken(), 0);
}

#[tokio::test]
async fn list_of_branches_is_limited() {
    let host = GitHost::with(|settings| settings.limits.manifest_bytes = 1000).await;
    let commit = host.commit(&[("x.yaml", "x")]);
    for at in 0..20 {
        host.repo.set(&format!("refs/heads/main-{at}"), &commit);
    }
    assert!(host.files("#main").await.is_ok(), "only what is asked for is listed");
    for at in 0..20 {
        host.repo.set(&format!("refs/heads/{at}/main"), &commit);
    }
    exceeds(host.files("#main").await, "manifestBytes", 1000);
}
