//! One image for each kind of error that its parser has no test of, or whose text could harm the
//! log, and for oddities that are read and that no parser tests. All others have tests in `oci` and
//! `source`, those of images, and in `fbc` and `render`, those of FBC.

use serde_json::{Value, json};
use tar::EntryType;
use testkit::{Image, Layer, gzip, index};

use crate::site::{image, layer, rooted};

/// A trick, its image, and the error or the packages that are published.
pub(crate) type Row = (&'static str, Image, &'static str);

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Images that are not published, with their errors as [`super::error_name`] calls them.
pub(crate) fn refused() -> Vec<Row> {
    let layers = layers().into_iter();
    let layers = layers.map(|(trick, layer, error)| (trick, image([layer]), error));
    layers.chain(images()).collect()
}

/// Returns a layer with a package named good, to which a row adds its attack.
fn good() -> Layer {
    layer("configs/good.yaml", "good")
}

fn raw(bytes: impl Into<Vec<u8>>) -> Layer {
    Layer::new().raw(bytes.into())
}

fn layers() -> Vec<(&'static str, Layer, &'static str)> {
    let with = |path: &str| good().file(path, "");
    let entry = |kind, path: &[u8]| good().entry(kind, path, b"", b"");
    let symlink = |target: &str| good().symlink("configs/link.yaml", target);
    let content = |content: &str| good().file("configs/x", content);
    let number = format!("{{\"v\": 1e{}}}", "9".repeat(1 << 20));
    let log_line = with("configs/x\nERROR all is lost\u{1b}[2J");
    let folders = with(&format!("configs/{}x", "d/".repeat(2000)));
    let not_text = entry(EntryType::Regular, b"configs/\xff");
    let sparse = entry(EntryType::GNUSparse, b"configs/x");
    vec![
        ("a name for the logs", log_line, "layer unprintable"),
        ("a name that is not UTF-8", not_text, "layer not utf8"),
        ("folders inside each other", folders, "layer deep"),
        (
            "a whiteout of nothing",
            with("configs/.wh."),
            "layer whiteout",
        ),
        (
            "a device",
            entry(EntryType::Char, b"configs/zero"),
            "layer kind",
        ),
        ("a sparse file", sparse, "layer sparse"),
        ("symlink to nothing", symlink("\n\u{1b}[2J"), "link broken"),
        (
            "no FBC",
            content("a: !!int \"\\e[2J\\n\"\n"),
            "render invalid",
        ),
        ("an error of megabytes", content(&number), "render invalid"),
    ]
}

fn images() -> Vec<Row> {
    let set = |at: &str, value: Value| {
        image([good()]).with_changed_manifest(|manifest| *manifest.pointer_mut(at).unwrap() = value)
    };
    let child = image([good()]);
    let page = Image::of_manifest(MANIFEST, "<html>\n\u{1b}[2J".into());
    let long_type = set("/layers/0/mediaType", json!("\u{1b}".repeat(100_000)));
    let path = set("/layers/0/digest", json!("sha256:../../etc/passwd"));
    let others = index(&[("linux/arm64", &child), ("\n\u{1b}[2J/x", &child)]);
    vec![
        ("not JSON", page, "image json"),
        (
            "an unknown type of layer, of megabytes",
            long_type,
            "image manifest",
        ),
        ("a digest that is a path", path, "image digest"),
        (
            "no root",
            rooted("/\n\u{1b}[2J\0", [good()]),
            "image no root",
        ),
        ("no image for the platform", others, "image platform"),
    ]
}

/// Oddities that catalogd reads too.
pub(crate) fn read() -> Vec<Row> {
    let garbage = raw([gzip(&good().tar()), b"garbage".to_vec()].concat());
    let device = good().entry(EntryType::Fifo, b"configs/fifo", b"", b"");
    let hides = Layer::new().whiteout("configs/fifo");
    vec![
        ("garbage after the stream", image([garbage]), "good"),
        ("an empty layer", image([good(), raw(Vec::new())]), "good"),
        (
            "a device that an upper layer hides",
            image([device, hides]),
            "good",
        ),
    ]
}
