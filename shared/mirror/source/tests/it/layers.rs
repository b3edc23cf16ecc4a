//! Overlay semantics through the front door.

use std::io;
use std::time::Duration;

use source::{EmptyLayers, Error, UnpackError};
use tar::EntryType;
use testkit::{ImageBuilder, Kind, Layer, gzip};

use crate::kit::{Collect, catalog, failed, files, pull, pull_but, push, pushed, small, source};

#[tokio::test]
async fn whiteout_of_root_hides_lower_layers() {
    // oc-mirror writes the filtered catalog and a whiteout of the old one.
    let old = || Layer::new().file("configs/old", "old");
    let new = || Layer::new().file("configs/new", "new");
    let (whiteout, file) = (
        Layer::new().whiteout("configs"),
        Layer::new().file("configs", ""),
    );
    for (what, layers) in [
        ("one layer", vec![old(), new().whiteout("configs")]),
        ("a layer of its own", vec![old(), whiteout, new()]),
        ("opaque root", vec![old(), new().opaque("configs")]),
        ("opaque image", vec![old(), new().file(".wh..wh..opq", "")]),
        ("replaced by a file in between", vec![old(), file, new()]),
    ] {
        assert_eq!(files(layers).await.unwrap(), ["new=new"], "{what}");
    }
}

#[tokio::test]
async fn broken_link_is_an_error_unless_excluded() {
    let layer = Layer::new().file("configs/f", "f");
    let image = catalog([layer.symlink("configs/out", "/etc/passwd")]);
    let (registry, images) = pushed(&image).await;
    let text = failed(pull(&images, &registry).await, "link: outside");
    let want = "link out: its target /etc/passwd lies outside the catalog's directory";
    assert_eq!(text, want);
    let sink = Collect {
        excluded: ["out".to_owned()].into(),
        ..Collect::default()
    };
    let digest = image.digest.parse().unwrap();
    let (source, none) = (source(&registry), EmptyLayers::default());
    let found = images.read(&source, &digest, &none, sink).await;
    assert_eq!(found.unwrap().0.list(), ["f=f"]);
}

#[tokio::test]
async fn broken_archive_and_missing_root_are_refused_with_the_place() {
    let file = Layer::new().file("configs/a", [b'x'; 2000]).tar();
    let (garbage, short) = (gzip(&[7; 2048]), gzip(&file[..1024]));
    let [garbage, short] = [garbage, short].map(|bytes| Layer::new().raw(bytes));
    let link = Layer::new().symlink("configs", "/data");
    let whiteout = Layer::new().whiteout("configs");
    for (layer, want, says) in [
        (garbage, "layer: tar", "of a header is malformed (entry 1)"),
        (
            short,
            "layer: content",
            "to the end of a: 1488 bytes are missing",
        ),
        (link, "image: root not directory", "is not a directory"),
        (whiteout, "image: no root", "has no directory /configs"),
    ] {
        let text = failed(files([layer]).await, want);
        assert!(text.contains(says), "{text}");
    }
}

#[tokio::test]
async fn odd_entries_outside_root_are_ignored() {
    let long = format!("configs/{}", "long/".repeat(60));
    let comment = b"20 comment=anything\n";
    let layer = Layer::new()
        .entry(EntryType::Char, b"dev/null", b"", b"")
        .entry(EntryType::Regular, b"etc/\xff", b"", b"x")
        .pax_text(EntryType::XGlobalHeader, comment)
        .file("../configs/evil", "")
        .file("configs/../../evil", "")
        .file("configs2/x", "")
        .file("etc/a", "1")
        .file("etc/a", "2")
        .file(&format!("{long}f"), "deep");
    let want = format!("{}f=deep", long.trim_start_matches("configs/"));
    assert_eq!(files([layer]).await.unwrap(), [want]);
    assert!(
        files([Layer::new().dir("configs")])
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn layer_known_as_empty_is_skipped() {
    let base = Layer::new()
        .dir("etc")
        .file("etc/os", "x")
        .whiteout("etc/old");
    let (registry, images) = pushed(&catalog([base, Layer::new().file("configs/a", "a")])).await;
    let (_, first) = pull(&images, &registry).await.unwrap();
    let empty = first.empty_layers.empty.len();
    assert_eq!(
        (first.layers_fetched, first.layers_skipped, empty),
        (2, 0, 1)
    );
    registry.reset();
    let (sink, second) = pull_but(&images, &registry, &first.empty_layers)
        .await
        .unwrap();
    assert_eq!((second.layers_fetched, second.layers_skipped), (1, 1));
    assert_eq!(second.empty_layers, first.empty_layers);
    assert_eq!(
        (sink.list(), registry.count(Kind::Blob)),
        (vec!["a=a".to_owned()], 2)
    );
    let (before, now) = (first.traffic, second.traffic);
    assert!(now.bytes > 0 && now.bytes < before.bytes, "{now:?}");
    assert_eq!(now.requests, 3);
}

#[tokio::test]
async fn layers_are_fetched_concurrently() {
    let layers = (0..5).map(|at| Layer::new().file(&format!("configs/{at}"), "x"));
    let (registry, images) = pushed(&catalog(layers)).await;
    registry.delay(Kind::Blob, Duration::from_millis(100));
    let (sink, _) = pull(&images, &registry).await.unwrap();
    assert_eq!(sink.files.len(), 5);
    assert_eq!(registry.most_at_once(Kind::Blob), 3);
}

#[tokio::test]
async fn hidden_layers_are_not_fetched() {
    let lower = (0..6).map(|at| Layer::new().file(&format!("configs/old{at}"), "x"));
    let top = Layer::new().file("configs/new", "n").whiteout("configs");
    let (registry, images) = pushed(&catalog(lower.chain([top]))).await;
    let (sink, pull) = pull(&images, &registry).await.unwrap();
    assert_eq!(sink.list(), ["new=n"]);
    assert_eq!((pull.layers_fetched, pull.layers_skipped), (1, 6));
    // The config and at most the first three.
    assert!(registry.count(Kind::Blob) <= 4);
}

#[tokio::test]
async fn layer_listed_twice_is_read_once() {
    let (a, whiteout) = (
        Layer::new().file("configs/a", "a"),
        Layer::new().whiteout("configs/a"),
    );
    let (registry, images) = pushed(&catalog([a.clone(), whiteout, a])).await;
    let (sink, pull) = pull(&images, &registry).await.unwrap();
    assert_eq!(
        (sink.list(), pull.layers_fetched),
        (vec!["a=a".to_owned()], 2)
    );
}

#[tokio::test]
async fn error_of_sink_is_returned_unchanged_unless_the_digest_is_wrong() {
    // The sink takes no files but text.
    let image = catalog([Layer::new().plain().file("configs/a", b"\xff1")]);
    let (registry, images) = pushed(&image).await;
    let Err(Error::Unpack(UnpackError::Sink(error))) = pull(&images, &registry).await else {
        panic!("not the sink's error")
    };
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert_eq!(error.to_string(), "stream did not contain valid UTF-8");
    let forged = Layer::new().plain().file("configs/a", b"\xff2").tar();
    registry.replace_blob(&image.layers[0], forged);
    let text = failed(pull(&images, &registry).await, "digest");
    assert!(text.starts_with("layer has digest"), "{text}");
}

#[tokio::test]
async fn layer_empty_below_one_root_is_fetched_for_another() {
    let (registry, images) = pushed(&small()).await;
    let push_root = |root: &str| {
        let elsewhere = Layer::new().file("other/a.yaml", "a");
        let image = ImageBuilder::catalog(root).layer(elsewhere);
        let here = Layer::new().file("configs/b.yaml", "b");
        push(&registry, &image.layer(here).build());
    };
    push_root("/configs");
    let (_, first) = pull(&images, &registry).await.unwrap();
    let empty = &first.empty_layers;
    assert_eq!((empty.root.as_str(), empty.empty.len()), ("configs", 1));
    push_root("/other");
    let (sink, second) = pull_but(&images, &registry, empty).await.unwrap();
    assert_eq!(
        (sink.list(), second.layers_fetched),
        (vec!["a.yaml=a".to_owned()], 2)
    );
}
