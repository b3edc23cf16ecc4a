//! Exactly the limit passes, one more is an error that names the limit, its value and where.

use std::fs;

use source::{Error, ImageLimits, Source};
use testkit::{Image, ImageBuilder, Layer, Registry};

use crate::kit::{Collect, catalog, client_with, exceeded, limits_at, pull, pull_source, push};

async fn with(limits: ImageLimits, image: &Image) -> Result<Collect, Error> {
    let registry = Registry::start().await;
    push(&registry, image);
    let images = client_with(registry.host(), |settings| settings.limits = limits);
    pull(&images, &registry).await.map(|(sink, _)| sink)
}

/// A limit, what exactly passes, where it is exceeded by one, and by what image.
type Row = (&'static str, u64, &'static str, Image);

fn rows() -> Vec<Row> {
    // One header, one block of content and the end of the archive.
    let layer = || Layer::new().file("configs/f", "four");
    let plain = || catalog([layer()]);
    let packed = plain().blobs[&plain().layers[0]].len() as u64;
    let unpacked = layer().tar().len() as u64;
    let described: serde_json::Value = serde_json::from_slice(plain().manifest()).unwrap();
    let config = described["config"]["size"].as_u64().unwrap();
    let symlink = |target: &str| catalog([layer().symlink("configs/l", target)]);
    let long_name = catalog([layer().file(&"n".repeat(150), "")]);
    let manifest = plain().manifest().len() as u64;
    let ignored = catalog([layer().file("etc/ignored", "")]);
    let labelled = ImageBuilder::catalog("//configs/").layer(layer()).build();
    let (of_manifest, of_layer) = ("manifest sha256:", "layer sha256:");
    let one_layer = catalog([layer().file("etc/x", "")]);
    let two_layers = catalog([layer(), Layer::new().file("configs/x", "")]);
    let in_folder = catalog([layer().file("configs/d/x", "")]);
    vec![
        ("manifestBytes", manifest, of_manifest, plain()),
        ("configBytes", config, "config sha256:", plain()),
        ("layers", 2, of_manifest, catalog([layer(), Layer::new()])),
        ("compressedBytes", packed, of_manifest, plain()),
        ("decompressedBytes", unpacked, of_layer, plain()),
        (
            "decompressedBytes",
            unpacked,
            of_layer,
            catalog([layer().zstd()]),
        ),
        ("ratio", unpacked.div_ceil(packed), of_layer, plain()),
        ("entries", 2, of_layer, one_layer),
        ("entries", 2, of_layer, two_layers),
        ("pathBytes", 9, "path configs/f of layer sha256:", plain()),
        ("pathBytes", 11, "path etc/ignored of layer", ignored),
        (
            "pathBytes",
            14,
            "path /configs/././f of",
            symlink("/configs/././f"),
        ),
        ("pathBytes", 10, "the label operators", labelled),
        // The long name with its zero byte and its own header.
        (
            "headerBytes",
            512 + 151,
            "entry 2 of layer sha256:",
            long_name,
        ),
        ("fileBytes", 4, "file f", plain()),
        // Two paths and a target, each path with what a table takes.
        (
            "treeBytes",
            65 + 65 + 1,
            "down to layer sha256:",
            symlink("f"),
        ),
        // With the folder in between.
        ("treeBytes", 65 + 67 + 65, "down to layer", in_folder),
        // The link, the file it names, and that file itself.
        ("linkSteps", 3, "the links up to l", symlink("f")),
    ]
}

#[tokio::test]
async fn image_at_exact_limits_is_read() {
    for (name, exact, place, image) in rows() {
        let passed = with(limits_at(name, exact), &image).await;
        assert!(passed.is_ok(), "{name} {exact}: {passed:?}");
        let found = exceeded(
            with(limits_at(name, exact - 1), &image).await,
            name,
            exact - 1,
        );
        assert!(found.contains(place), "{found}");
    }
}

#[tokio::test]
async fn layer_below_ratio_floor_may_be_dense() {
    let layer = Layer::new().file("configs/f", "four");
    let unpacked = layer.tar().len() as u64;
    let with_floor = async |ratio_floor_bytes| {
        let limits = ImageLimits {
            ratio: 1,
            ratio_floor_bytes,
            ..ImageLimits::default()
        };
        with(limits, &catalog([layer.clone()])).await
    };
    assert!(with_floor(unpacked).await.is_ok());
    exceeded(with_floor(unpacked - 1).await, "ratio", 1);
}

#[tokio::test]
async fn folder_at_exact_limits_is_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join("d/file"), "four").unwrap();
    fs::write(folder.path().join("x"), "two").unwrap();
    let source: Source = format!("dir:{}", folder.path().display()).parse().unwrap();
    for (name, exact) in [
        ("entries", 3),
        ("pathBytes", 6),
        ("fileBytes", 4),
        ("decompressedBytes", 7),
    ] {
        let read = async |value| {
            let images = client_with("", |settings| settings.limits = limits_at(name, value));
            pull_source(&images, &source).await
        };
        assert_eq!(
            read(exact).await.unwrap().0.list(),
            ["d/file=four", "x=two"],
            "{name}"
        );
        exceeded(read(exact - 1).await, name, exact - 1);
    }
}
