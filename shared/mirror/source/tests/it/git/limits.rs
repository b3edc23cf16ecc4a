//! Limits on packs and on what is in them.

use source::{DownloadSpace, Error};
use testkit::Random;

use super::{GitHost, PATH};
use crate::kit::{exceeded, limits_at};

/// Reads one file of a thousand bytes in a folder, with one limit of this value. Returns the bytes
/// received.
async fn read(name: &str, to: u64) -> Result<u64, Error> {
    let host = GitHost::with(|settings| settings.limits = limits_at(name, to)).await;
    let lines: String = (0..100)
        .map(|line| format!("{:09}\n", line * line * 7919))
        .collect();
    host.commit(&[("folder/file.yaml", &lines)]);
    host.pull("").await.map(|(_, pull)| pull.traffic.bytes)
}

/// Compares the limit that a read exceeds, and its place.
#[track_caller]
fn exceeds<T>(read: Result<T, Error>, name: &str, value: u64) {
    let place = exceeded(read, name, value);
    assert!(place.contains(PATH), "{place}");
}

#[tokio::test]
async fn limits_of_images_hold_at_their_value() {
    // `archive` has the limits of what is in an archive.
    // A commit has no layers, so this is all of it.
    let stored = read("layers", 1).await.unwrap();
    // The index of the pack counts too, and its size depends on the version of git.
    assert!(read("compressedBytes", stored + 4096).await.is_ok());
    for (name, at) in [("compressedBytes", stored - 1), ("ratio", 1)] {
        exceeds(read(name, at).await, name, at);
    }
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
    let add =
        |name: &dyn Fn(u8) -> String| (0..20).for_each(|at| host.repo.set(&name(at), &commit));
    add(&|at| format!("refs/heads/main-{at}"));
    assert!(
        host.files("#main").await.is_ok(),
        "only what is asked for is listed"
    );
    add(&|at| format!("refs/heads/{at}/main"));
    exceeds(host.files("#main").await, "manifestBytes", 1000);
}
