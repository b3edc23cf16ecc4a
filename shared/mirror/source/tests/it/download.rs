//! Copies of images on disk.

use std::time::Duration;

use source::{Download, DownloadSpace, EmptyLayers, Error, Source, Sources};
use testkit::{Image, Kind, Layer, Registry, index};

use crate::kit::{Collect, catalog, exceeded, failed, pull, push, pushed, source};

/// Three layers: the middle one has nothing of the catalog, and the top one hides a file of the
/// base.
fn three_layers() -> Image {
    let base = Layer::new().file("configs/a.yaml", "a");
    catalog([
        base.file("configs/b.yaml", "hidden"),
        Layer::new().file("etc/os-release", "x"),
        Layer::new().file("configs/b.yaml", "b"),
    ])
}

/// Copies the image, except for the layers that are known to be empty.
async fn download(
    images: &Sources,
    registry: &Registry,
    known: &EmptyLayers,
) -> Result<Download, Error> {
    let source = source(registry);
    let digest = images.resolve(&source).await?;
    let Source::Registry { reference, .. } = &source else {
        panic!("{source} is in no registry");
    };
    images.download(reference, &digest, known).await
}

#[tokio::test]
async fn copy_is_read_as_the_registry_is() {
    let image = three_layers();
    for image in [image.clone(), index(&[("linux/amd64", &image)])] {
        let (registry, images) = pushed(&image).await;
        let (expected, direct) = pull(&images, &registry).await.unwrap();
        let none = EmptyLayers::default();
        let copy = download(&images, &registry, &none).await.unwrap();
        let requests = registry.requests().len();
        let (from, digest) = (&copy.source, image.digest.parse().unwrap());
        let (found, copied) = images
            .read(from, &digest, &none, Collect::default())
            .await
            .unwrap();
        assert_eq!(found.list(), expected.list());
        assert_eq!(copied.empty_layers, direct.empty_layers);
        assert_eq!(
            (copy.traffic.bytes, copied.traffic.bytes),
            (direct.traffic.bytes, 0)
        );
        assert_eq!(registry.requests().len(), requests);
    }
}

#[tokio::test]
async fn known_empty_layer_is_not_copied() {
    let (registry, images) = pushed(&three_layers()).await;
    let (_, direct) = pull(&images, &registry).await.unwrap();
    registry.reset();
    let copied = download(&images, &registry, &direct.empty_layers).await;
    copied.unwrap();
    assert_eq!(
        registry.count(Kind::Blob),
        3,
        "the config and two of three layers"
    );
}

#[tokio::test]
async fn wrong_layer_is_refused_and_copy_is_removed() {
    let image = three_layers();
    let (registry, images) = pushed(&image).await;
    let layer = &image.layers[1];
    let mut bytes = image.blobs[layer].to_vec();
    bytes[9] ^= 1;
    registry.replace_blob(layer, bytes);
    let none = EmptyLayers::default();
    let text = failed(download(&images, &registry, &none).await, "digest");
    assert!(text.starts_with("layer "), "{text}");
    push(&registry, &image);
    let copy = download(&images, &registry, &none).await.unwrap();
    let Source::OciLayout { dir, .. } = copy.source.clone() else {
        panic!("{} is no layout", copy.source);
    };
    assert!(dir.exists());
    drop(copy);
    assert!(!dir.exists());
}

#[tokio::test]
async fn image_larger_than_its_share_is_refused_and_others_wait_for_space() {
    let (registry, images) = pushed(&three_layers()).await;
    let none = EmptyLayers::default();
    let with_space = |bytes| {
        let images = images.clone();
        images.with_settings(|settings| settings.download_space = DownloadSpace::new(bytes))
    };
    exceeded(
        download(&with_space(64), &registry, &none).await,
        "downloadBytes",
        16,
    );
    // One permit, and so one copy at a time.
    let images = with_space(1 << 20);
    let first = download(&images, &registry, &none).await.unwrap();
    let second = download(&images, &registry, &none);
    tokio::pin!(second);
    let waited = tokio::time::timeout(Duration::from_millis(100), &mut second).await;
    assert!(waited.is_err());
    drop(first);
    second.await.unwrap();
}
