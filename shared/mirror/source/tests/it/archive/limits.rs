//! Limits on archives, and the space of their copies.

use std::time::Duration;

use source::{DownloadSpace, ImageLimits};
use testkit::{FileAnswer, Layer};
use tokio::task::yield_now;

use super::{PATH, host, host_but, two_folders};
use crate::kit::{chain, exceeded, limits_at};

#[tokio::test]
async fn limits_of_images_hold_at_their_value() {
    let archive = two_folders().plain();
    let size = archive.archive().len() as u64;
    let read = async |layer: &Layer, name, value| {
        let host = host_but(layer, |settings| settings.limits = limits_at(name, value)).await;
        host.pull("").await
    };
    for (name, exact) in [
        ("compressedBytes", size),
        ("decompressedBytes", size),
        ("entries", 2),
        ("fileBytes", 1),
    ] {
        let passed = read(&archive, name, exact).await;
        passed.unwrap_or_else(|error| panic!("{name}: {}", chain(&error)));
        exceeded(read(&archive, name, exact - 1).await, name, exact - 1);
    }
    let bomb = Layer::new().file("a/zeros", vec![0; 4 << 20]);
    exceeded(read(&bomb, "ratio", 2).await, "ratio", 2);
}

#[tokio::test]
async fn archive_without_length_is_cut_off_at_the_limit_and_gives_its_space_back() {
    let bytes = two_folders().plain().archive();
    let (space, limit) = (DownloadSpace::new(64 << 20), bytes.len() as u64 - 1);
    let mut host = host_but(&two_folders(), |settings| {
        settings.download_space = space.clone();
        settings.limits.compressed_bytes = limit;
    })
    .await;
    host.server.script(PATH, FileAnswer::Chunked(bytes.clone()));
    let place = exceeded(host.resolve("").await, "compressedBytes", limit);
    assert!(place.contains(PATH), "{place}");
    assert_eq!(space.taken(), 0);
    host.images = host
        .images
        .with_settings(|settings| settings.limits = ImageLimits::default());
    host.server.script(PATH, FileAnswer::Chunked(bytes));
    host.resolve("").await.unwrap();
    assert_eq!(
        space.taken(),
        1 << 20,
        "what was held for an unknown length"
    );
    host.pull("").await.unwrap();
    assert_eq!(space.taken(), 0);
}

#[tokio::test]
async fn archive_larger_than_its_share_of_the_disk_is_refused_before_its_body() {
    let large = Layer::new().raw(vec![0; (1 << 20) + 1]);
    let host = host_but(&large, |settings| {
        settings.download_space = DownloadSpace::new(4 << 20);
    });
    exceeded(host.await.resolve("").await, "downloadBytes", 1 << 20);
}

#[tokio::test]
async fn bytes_that_are_not_read_leave_the_disk() {
    let host = host(&two_folders()).await;
    let space = &host.images.settings.download_space;
    host.resolve("").await.unwrap();
    assert_eq!(space.taken(), 1 << 20);
    // Only here: the clock of a paused runtime jumps while a server is waited for.
    yield_now().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(121)).await;
    yield_now().await;
    tokio::time::resume();
    assert_eq!(space.taken(), 0);
    // The version is still known, and the read downloads again.
    let (sink, pull) = host.pull("").await.unwrap();
    assert_eq!((sink.files.len(), pull.traffic.requests), (2, 1));
    assert_eq!(host.server.statuses(), [200, 304, 200]);
}
