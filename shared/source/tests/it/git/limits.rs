//! Limits on packs and on what is in them.

use catalog_mirror_source::{DownloadSpace, Error, GitFault, ImageLimits};
use testkit::{DeltaBuilder, FileAnswer, GitKind, packet};

use super::{GitHost, PATH};
use crate::kit::chain;

/// One file of a thousand bytes in a folder.
fn files() -> Vec<(&'static str, String)> {
    let lines: String = (0..100).map(|line| format!("{:09}\n", line * line * 7919)).collect();
    vec![("folder/file.yaml", lines)]
}

async fn read(change: impl Fn(&mut ImageLimits)) -> Result<Vec<String>, Error> {
    let host = GitHost::with(|settings| change(&mut settings.limits)).await;
    let files = files();
    let files: Vec<_> = files.iter().map(|(path, content)| (*path, content.as_str())).collect();
    host.commit(&files);
    host.files("").await
}

fn limit(read: Result<Vec<String>, Error>) -> String {
    match read.unwrap_err() {
        Error::Limit(limit) => {
            assert!(limit.place.contains(PATH), "{}", limit.place);
            limit.name.to_owned()
        }
        other => panic!("{}", chain(&other)),
    }
}

#[tokio::test]
async fn limits_of_images_hold_at_their_value() {
    let host = GitHost::start().await;
    let files = files();
    let files: Vec<_> = files.iter().map(|(path, content)| (*path, content.as_str())).collect();
    host.commit(&files);
    let fetched = host.pull("").await.unwrap().1.bytes;
    let answer = fetched - host.repo.info().len() as u64;
    let inflated = host.repo.size();
    type Change = fn(&mut ImageLimits, u64);
    let rows: [(&str, Change, u64); 6] = [
        ("compressedBytes", |limits, at| limits.compressed_bytes = at, answer),
        (
            "decompressedBytes",
            |limits, at| limits.decompressed_bytes = at,
            inflated,
        ),
        // A commit, two trees and a file.
        ("entries", |limits, at| limits.entries = at, 4),
        ("fileBytes", |limits, at| limits.file_bytes = at, 1000),
        ("pathBytes", |limits, at| limits.path_bytes = at, 16),
        // Both paths, and 64 bytes for each.
        ("treeBytes", |limits, at| limits.tree_bytes = at, 22 + 2 * 64),
    ];
    for (name, change, at) in rows {
        read(|limits| change(limits, at))
            .await
            .unwrap_or_else(|error| panic!("{name}: {}", chain(&error)));
        assert_eq!(limit(read(|limits| change(limits, at - 1)).await), name);
    }
    assert_eq!(
        limit(read(|limits| (limits.ratio, limits.ratio_floor_bytes) = (1, 1)).await),
        "ratio"
    );
}

/// A terabyte that is declared, and a bomb that keeps its promise.
#[tokio::test]
async fn bomb_is_refused_by_the_size_that_it_declares() {
    let host = GitHost::start().await;
    host.commit(&[("x.yaml", "x")]);
    let zeros = vec![0; 80 << 20];
    let huge = DeltaBuilder::new(1, 90 << 20).copy(0, 1);
    let over = DeltaBuilder::new(1, (100 << 20) + 1).copy(0, 1);
    let base = || host.repo.pack().object(GitKind::Blob, b"b");
    for (pack, name) in [
        (
            host.repo.pack().object_of_size(GitKind::Blob, 1 << 40, b"x"),
            "fileBytes",
        ),
        (host.repo.pack().object(GitKind::Blob, &zeros), "ratio"),
        (host.repo.pack().object(GitKind::Tree, &zeros), "ratio"),
        (base().delta_of(3, &huge), "ratio"),
        (base().delta_of(3, &DeltaBuilder::new(1, u64::MAX)), "fileBytes"),
    ] {
        host.repo.send_pack(pack.finish());
        assert_eq!(limit(host.files("").await), name);
    }
    let host = GitHost::with(|settings| settings.limits.ratio_floor_bytes = 1 << 30).await;
    host.commit(&[("x.yaml", "x")]);
    let (base, large) = (|| host.repo.pack(), vec![7; 120 << 20]);
    let shrink = DeltaBuilder::new(120 << 20, 1).copy(0, 1);
    for pack in [
        base().object(GitKind::Blob, b"b").delta_of(3, &over),
        base().object(GitKind::Blob, &large).delta_of(3, &shrink),
    ] {
        host.repo.send_pack(pack.finish());
        let (fault, text) = host.fault(host.files("").await);
        assert!(matches!(fault, GitFault::LargeDelta(_)), "{text}");
    }
}

/// Each delta is small, but rebuilding all of them without memory of the ones before is the square of their number.
#[tokio::test]
async fn chain_of_deltas_is_read_to_its_maximum() {
    for (length, is_read) in [(4095, true), (4096, false)] {
        let host = GitHost::start().await;
        host.commit(&[("x.yaml", "x")]);
        let mut pack = host.repo.pack().object(GitKind::Blob, b"b");
        let add = DeltaBuilder::new(1, 1).insert(b"c");
        for at in 0..length {
            pack = pack.delta_of(3 + at, &add);
        }
        host.repo.send_pack(pack.finish());
        let read = host.files("").await;
        if is_read {
            assert_eq!(read.unwrap(), ["x.yaml=x"]);
        } else {
            let (_, text) = host.fault(read);
            assert!(text.contains("too long"), "{text}");
        }
    }
}

/// Few bytes of deltas that copy megabytes, again and again.
#[tokio::test]
async fn work_of_deltas_is_limited() {
    let host = GitHost::with(|settings| {
        settings.limits.decompressed_bytes = 64 << 20;
        settings.limits.ratio_floor_bytes = 1 << 30;
    })
    .await;
    host.commit(&[("x.yaml", "x")]);
    let mebibyte = vec![7; 1 << 20];
    let mut pack = host.repo.pack().object(GitKind::Blob, &mebibyte);
    // Sixty results of a few bytes, which all go through a large one.
    let (grow, shrink) = (
        (0..30).fold(DeltaBuilder::new(1 << 20, 30 << 20), |delta, _| {
            delta.copy(0, (1 << 20) - 1).insert(b"x")
        }),
        DeltaBuilder::new(30 << 20, 1).copy(0, 1),
    );
    pack = pack.delta_of(3, &grow);
    for _ in 0..4 {
        pack = pack.delta_of(4, &shrink);
    }
    host.repo.send_pack(pack.finish());
    assert_eq!(limit(host.files("").await), "decompressedBytes");
}

#[tokio::test]
async fn pack_that_never_ends_is_cut_off_and_gives_its_space_back() {
    let space = DownloadSpace::new(4 << 20);
    let host = GitHost::with(|settings| settings.download_space = space.clone()).await;
    host.commit(&[("x.yaml", "x")]);
    for band in [1, 2] {
        let mut answer = packet(b"packfile\n");
        while answer.len() <= 1 << 20 {
            answer.extend(packet(&[band; 60_000]));
        }
        host.repo.send_answer(answer);
        assert_eq!(limit(host.files("").await), "downloadBytes", "messages count too");
        assert_eq!(space.taken(), 0);
    }
}

#[tokio::test]
async fn list_of_branches_without_end_is_refused() {
    let host = GitHost::with(|settings| settings.limits.manifest_bytes = 1000).await;
    let commit = host.commit(&[("x.yaml", "x")]);
    for at in 0..20 {
        host.repo.set(&format!("refs/heads/main-{at}"), &commit);
    }
    assert_eq!(limit(host.files("#main").await), "manifestBytes");
    assert!(host.files("").await.is_ok(), "only what is asked for is listed");
    let (_, text) = host.fault(host.files("#other").await);
    assert!(text.contains("too many to list"), "{text}");
    let info = FileAnswer::Chunked(vec![b'0'; 2000].into());
    host.server.script(&format!("{PATH}/info/refs"), info);
    assert_eq!(limit(host.files("").await), "manifestBytes");
}
