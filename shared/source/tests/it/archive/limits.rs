//! Limits on archives, and the space of their copies.

use std::time::Duration;

use catalog_mirror_source::{DownloadSpace, ImageLimits};
use testkit::{FileAnswer, FileServer, Layer};
use tokio::task::yield_now;

use super::{PATH, pull, source, two_folders};
use crate::kit::{Collect, chain, client_with, exceeded, limits_at, read};

#[tokio::test]
async fn limits_of_images_hold_at_their_value() {
    let archive = two_folders().plain();
    let size = archive.archive().len() as u64;
    let bomb = Layer::new().file("a/zeros", vec![0; 4 << 20]);
    let read = async |layer: &Layer, limits: ImageLimits| {
        let server = FileServer::start().await;
        server.put(PATH, layer.archive());
        let images = client_with(server.host(), |settings| settings.limits = limits.clone());
        pull(&images, &source(&server, "")).await
    };
    for (name, exact) in [
        ("compressedBytes", size),
        ("decompressedBytes", size),
        ("entries", 2),
        ("fileBytes", 1),
    ] {
        let passed = read(&archive, limits_at(name, exact)).await;
        passed.unwrap_or_else(|error| panic!("{name}: {}", chain(&error)));
        exceeded(read(&archive, limits_at(name, exact - 1)).await, name, exact - 1);
    }
    exceeded(read(&bomb, limits_at("ratio", 2)).await, "ratio", 2);
}

#[tokio::test]
async fn archive_without_length_is_cut_off_at_the_limit_and_gives_its_space_back() {
    let server = FileServer::start().await;
    let bytes = two_folders().plain().archive();
    let space = DownloadSpace::new(64 << 20);
    let images = client_with(server.host(), |settings| {
        settings.download_space = space.clone();
        settings.limits.compressed_bytes = bytes.len() as u64 - 1;
    });
    server.script(PATH, FileAnswer::Chunked(bytes.clone()));
    let answered = images.resolve(&source(&server, "")).await;
    let place = exceeded(answered, "compressedBytes", bytes.len() as u64 - 1);
    assert!(place.contains(PATH), "{place}");
    assert_eq!(space.taken(), 0);
    let images = images.with_settings(|settings| settings.limits = ImageLimits::default());
    server.script(PATH, FileAnswer::Chunked(bytes));
    let source = source(&server, "");
    let digest = images.resolve(&source).await.unwrap();
    assert_eq!(space.taken(), 1 << 20, "what was held for an unknown length");
    read(&images, &source, &digest, Collect::default()).await.unwrap();
    assert_eq!(space.taken(), 0);
}

#[tokio::test]
async fn archive_larger_than_its_share_of_the_disk_is_refused_before_its_body() {
    let server = FileServer::start().await;
    server.put(PATH, vec![0; (1 << 20) + 1]);
    let images = client_with(server.host(), |settings| {
        settings.download_space = DownloadSpace::new(4 << 20);
    });
    exceeded(images.resolve(&source(&server, "")).await, "downloadBytes", 1 << 20);
}

#[tokio::test]
async fn bytes_that_are_not_read_leave_the_disk() {
    let server = FileServer::start().await;
    server.put(PATH, two_folders().archive());
    let space = DownloadSpace::new(64 << 20);
    let images = client_with(server.host(), |settings| settings.download_space = space.clone());
    images.resolve(&source(&server, "")).await.unwrap();
    assert_eq!(space.taken(), 1 << 20);
    // Only here: the clock of a paused runtime jumps while a server is waited for.
    yield_now().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(121)).await;
    yield_now().await;
    tokio::time::resume();
    assert_eq!(space.taken(), 0);
    // The version is still known, and the read downloads again.
    let (sink, pull) = pull(&images, &source(&server, "")).await.unwrap();
    assert_eq!(sink.files.len(), 2);
    assert_eq!(pull.traffic.requests, 1);
    assert_eq!(server.statuses(), [200, 304, 200]);
}
