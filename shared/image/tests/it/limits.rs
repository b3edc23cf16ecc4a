//! Exactly the limit passes, one more does not.

use image::{Error, Images, Limits, Settings};
use testkit::{Image, Layer, Registry, gzip};

use crate::kit::{Collect, catalog, pull, push, settings};

async fn with(limits: Limits, image: &Image) -> Result<Collect, Error> {
    let registry = Registry::start().await;
    push(&registry, image);
    let images = Images::new(Settings {
        limits,
        ..settings(&registry)
    })
    .unwrap();
    pull(&images, &registry).await.map(|(sink, _)| sink)
}

#[tokio::test]
async fn limits_are_exact() {
    // One header, one block of content and the end of the archive, of which one block is read.
    let image = catalog([Layer::new().file("configs/f", "four")]);
    let config = image
        .blobs
        .iter()
        .find(|(digest, _)| **digest != image.layers[0])
        .unwrap()
        .1
        .len() as u64;
    type Set = fn(&mut Limits, u64);
    let cases: &[(&str, u64, Set)] = &[
        ("config_bytes", config, |limits, to| {
            limits.config_bytes = to;
        }),
        ("manifest_bytes", image.manifest().len() as u64, |limits, to| {
            limits.manifest_bytes = to;
        }),
        (
            "compressed_bytes",
            image.blobs[&image.layers[0]].len() as u64,
            |limits, to| limits.compressed_bytes = to,
        ),
        ("layers", 1, |limits, to| {
            limits.layers = to as usize;
        }),
        ("entries", 1, |limits, to| {
            limits.entries = to;
        }),
        ("path_bytes", 9, |limits, to| {
            limits.path_bytes = to as usize;
        }),
        ("file_bytes", 4, |limits, to| {
            limits.file_bytes = to;
        }),
        ("decompressed_bytes", 3 * 512, |limits, to| {
            limits.decompressed_bytes = to;
        }),
    ];
    for (name, exact, set) in cases {
        let at = |value| {
            let mut limits = Limits::default();
            set(&mut limits, value);
            limits
        };
        let passed = with(at(*exact), &image).await;
        assert!(passed.is_ok(), "{name}: {passed:?}");
        match with(at(exact - 1), &image).await {
            Err(Error::Limit(limit)) => assert_eq!((limit.name, limit.limit), (*name, exact - 1), "{limit}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn bombs_do_not_go_off() {
    let bomb = Layer::new().file("etc/zeros", vec![0; 8 << 20]);
    let limits = Limits {
        decompressed_bytes: 1 << 20,
        ..Limits::default()
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
    match with(Limits::default(), &catalog([named])).await {
        Err(Error::Limit(limit)) => assert_eq!(limit.name, "header_bytes"),
        other => panic!("{other:?}"),
    }
}
