//! Exactly the limit passes, one more is an error that names the limit, its value and where.

use std::fs;

use catalog_mirror_source::{EmptyLayers, Error, ImageLimits, Source, SourceSettings, Sources};
use testkit::{Image, ImageBuilder, Layer, Registry, gzip};

use crate::kit::{Collect, catalog, pull, push, settings};

async fn with(limits: ImageLimits, image: &Image) -> Result<Collect, Error> {
    let registry = Registry::start().await;
    push(&registry, image);
    let images = Sources::new(SourceSettings {
        limits,
        ..settings(&registry)
    })
    .unwrap();
    pull(&images, &registry).await.map(|(sink, _)| sink)
}

type Set = fn(&mut ImageLimits, u64);

/// A limit, what exactly passes, how it is set, where it is exceeded by one, and by what image.
type Row = (&'static str, u64, Set, &'static str, Image);

fn rows() -> Vec<Row> {
    // One header, one block of content and the end of the archive.
    let layer = || Layer::new().file("configs/f", "four");
    let plain = || catalog([layer()]);
    let packed = plain().blobs[&plain().layers[0]].len() as u64;
    let unpacked = layer().tar().len() as u64;
    let config = plain()
        .blobs
        .values()
        .map(bytes::Bytes::len)
        .find(|length| *length as u64 != packed);
    let symlink = |target: &str| catalog([layer().symlink("configs/l", target)]);
    let long = "n".repeat(150);
    vec![
        (
            "manifestBytes",
            plain().manifest().len() as u64,
            |limits, to| limits.manifest_bytes = to,
            "manifest sha256:",
            plain(),
        ),
        (
            "configBytes",
            config.unwrap() as u64,
            |limits, to| limits.config_bytes = to,
            "config sha256:",
            plain(),
        ),
        (
            "layers",
            2,
            |limits, to| limits.layers = to,
            "manifest sha256:",
            catalog([layer(), Layer::new()]),
        ),
        (
            "compressedBytes",
            packed,
            |limits, to| limits.compressed_bytes = to,
            "manifest sha256:",
            plain(),
        ),
        (
            "decompressedBytes",
            unpacked,
            |limits, to| limits.decompressed_bytes = to,
            "layer sha256:",
            plain(),
        ),
        (
            "ratio",
            unpacked.div_ceil(packed),
            |limits, to| (limits.ratio, limits.ratio_floor_bytes) = (to, 0),
            "layer sha256:",
            plain(),
        ),
        (
            "entries",
            2,
            |limits, to| limits.entries = to,
            "layer sha256:",
            catalog([layer().file("etc/x", "")]),
        ),
        (
            "entries",
            2,
            |limits, to| limits.entries = to,
            "layer sha256:",
            catalog([layer(), Layer::new().file("configs/x", "")]),
        ),
        (
            "pathBytes",
            9,
            |limits, to| limits.path_bytes = to,
            "path configs/f of layer sha256:",
            plain(),
        ),
        (
            "pathBytes",
            11,
            |limits, to| limits.path_bytes = to,
            "path etc/ignored of layer",
            catalog([layer().file("etc/ignored", "")]),
        ),
        (
            "pathBytes",
            14,
            |limits, to| limits.path_bytes = to,
            "path /configs/././f of",
            symlink("/configs/././f"),
        ),
        (
            "pathBytes",
            10,
            |limits, to| limits.path_bytes = to,
            "the label operators",
            ImageBuilder::catalog("//configs/").layer(layer()).build(),
        ),
        // The long name with its zero byte and its own header.
        (
            "headerBytes",
            512 + 151,
            |limits, to| limits.header_bytes = to,
            "entry 2 of layer sha256:",
            catalog([layer().file(&long, "")]),
        ),
        ("fileBytes", 4, |limits, to| limits.file_bytes = to, "file f", plain()),
        // Two paths and a target, each path with what a table takes.
        (
            "treeBytes",
            (1 + 64) + (1 + 64) + 1,
            |limits, to| limits.tree_bytes = to,
            "down to layer sha256:",
            symlink("f"),
        ),
        // With the folder in between.
        (
            "treeBytes",
            (1 + 64) + (3 + 64) + (1 + 64),
            |limits, to| limits.tree_bytes = to,
            "down to layer",
            catalog([layer().file("configs/d/x", "")]),
        ),
        // The link, the file it names, and that file itself.
        (
            "linkSteps",
            3,
            |limits, to| limits.link_steps = to,
            "the links up to l",
            symlink("f"),
        ),
    ]
}

#[tokio::test]
async fn image_at_exact_limits_is_read() {
    for (name, exact, set, place, image) in rows() {
        let at = |value| {
            let mut limits = ImageLimits::default();
            set(&mut limits, value);
            limits
        };
        let passed = with(at(exact), &image).await;
        assert!(passed.is_ok(), "{name} {exact}: {passed:?}");
        match with(at(exact - 1), &image).await {
            Err(Error::Limit(limit)) => {
                assert_eq!((limit.name, limit.limit), (name, exact - 1), "{limit}");
                assert!(limit.place.contains(place), "{limit}");
            }
            other => panic!("{name} {}: {other:?}", exact - 1),
        }
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
    let error = with_floor(unpacked - 1).await.unwrap_err();
    assert!(matches!(error, Error::Limit(limit) if (limit.name, limit.limit) == ("ratio", 1)));
}

#[tokio::test]
async fn folder_at_exact_limits_is_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join("d/file"), "four").unwrap();
    fs::write(folder.path().join("x"), "two").unwrap();
    let rows: [(&str, u64, Set); 4] = [
        ("entries", 3, |limits, to| limits.entries = to),
        ("pathBytes", 6, |limits, to| limits.path_bytes = to),
        ("fileBytes", 4, |limits, to| limits.file_bytes = to),
        ("decompressedBytes", 7, |limits, to| limits.decompressed_bytes = to),
    ];
    let source: Source = format!("dir:{}", folder.path().display()).parse().unwrap();
    for (name, exact, set) in rows {
        let read = async |value| {
            let mut settings = SourceSettings::default();
            set(&mut settings.limits, value);
            let images = Sources::new(settings)?;
            let digest = images.resolve(&source).await?;
            images
                .read(&source, &digest, &EmptyLayers::default(), Collect::default())
                .await
        };
        assert_eq!(read(exact).await.unwrap().0.list(), ["d/file=four", "x=two"], "{name}");
        match read(exact - 1).await {
            Err(Error::Limit(limit)) => assert_eq!((limit.name, limit.limit), (name, exact - 1)),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn decompression_bomb_is_refused() {
    let bomb = Layer::new().file("etc/zeros", vec![0; 8 << 20]);
    let limits = ImageLimits {
        decompressed_bytes: 1 << 20,
        ..ImageLimits::default()
    };
    for layer in [bomb.clone(), bomb.zstd()] {
        assert!(matches!(
            with(limits.clone(), &catalog([layer])).await,
            Err(Error::Limit(_))
        ));
    }
    // A name of many megabytes is read into memory by any tar reader that lets it.
    let name = "n".repeat(4 << 20);
    let named = Layer::new().raw(gzip(&Layer::new().file(&name, "").tar()));
    match with(ImageLimits::default(), &catalog([named])).await {
        Err(Error::Limit(limit)) => assert_eq!(limit.name, "headerBytes"),
        other => panic!("{other:?}"),
    }
}
