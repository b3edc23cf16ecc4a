//! Names of files.

use source::LayerError;
use tar::EntryType;
use testkit::Layer;

use super::row::{Row, fbc, good, in_layer, over, reads, refused};

pub(crate) fn rows() -> Vec<Row> {
    [spellings(), collisions(), unprintable(), long()]
        .into_iter()
        .flatten()
        .collect()
}

fn evil(path: &str) -> Layer {
    good().file(path, fbc("evil"))
}

fn raw(path: &[u8]) -> Layer {
    good().entry(EntryType::Regular, path, b"", fbc("evil").as_bytes())
}

/// Paths with dots, repeated slashes and other unusual spellings.
fn spellings() -> Vec<Row> {
    vec![
        reads("absolute", evil("/configs/evil.yaml"), "evil good"),
        reads("dots and slashes", evil(".//configs/./evil.yaml"), "evil good"),
        reads("down and up again", evil("configs/d/../evil.yaml"), "evil good"),
        reads(
            "absolute and above the root",
            evil("/../configs/evil.yaml"),
            "evil good",
        ),
        reads("out of the image", evil("../configs/evil.yaml"), "good"),
        reads(
            "out of the image later",
            evil("configs/../../configs/evil.yaml"),
            "good",
        ),
        reads("out of the catalog", evil("configs/../etc/evil.yaml"), "good"),
        reads("a folder that starts alike", evil("configs2/evil.yaml"), "good"),
        reads("other case", evil("Configs/evil.yaml"), "good"),
        reads("a backslash", evil("configs\\evil.yaml"), "good"),
        reads("shell and markup", evil("configs/$(id) '<b>\" .yaml"), "evil good"),
    ]
}

fn collisions() -> Vec<Row> {
    let twice = in_layer!(LayerError::Duplicate(_));
    vec![
        reads(
            "names that differ in case",
            good().file("configs/Good.yaml", fbc("Good")),
            "Good good",
        ),
        refused("twice", evil("configs/good.yaml"), twice),
        refused("twice, spelled differently", evil("/configs/x/../good.yaml"), twice),
        refused("a file as a folder", evil("configs/good.yaml/evil"), twice),
        refused(
            "a folder as a file",
            good().file("configs/d/x", "").file("configs/d", ""),
            twice,
        ),
        refused("a folder over a file", good().dir("configs/good.yaml"), twice),
    ]
}

fn unprintable() -> Vec<Row> {
    let control = in_layer!(LayerError::Unprintable(_));
    vec![
        refused("a line feed", evil("configs/x\nERROR all is lost"), control),
        refused("an escape", evil("configs/\u{1b}[2Jx"), control),
        refused("a turned line", evil("configs/\u{202e}lmay.x"), control),
        refused("a C1 control", evil("configs/\u{9b}2Jx"), control),
        refused("not UTF-8", raw(b"configs/\xff\x0a"), in_layer!(LayerError::NotUtf8(_))),
        reads("a line feed elsewhere", evil("etc/\n"), "good"),
        reads("not UTF-8 elsewhere", raw(b"etc/\xff"), "good"),
        reads("a zero byte ends the name", raw(b"configs/a\0/../../etc"), "evil good"),
        refused(
            "a zero byte in a PAX path",
            good().pax(&[("path", b"configs/a\0b")]).file("etc/x", ""),
            in_layer!(LayerError::Tar { .. }),
        ),
    ]
}

fn long() -> Vec<Row> {
    let name = |length: usize| format!("configs/{}", "n".repeat(length - "configs/".len()));
    let deep = format!("configs/{}x", "d/".repeat(2000));
    let wide = format!("configs/{}x", format!("{}/", "d".repeat(60)).repeat(63));
    vec![
        reads("as long as may be", evil(&name(4096)), "evil good"),
        refused("one byte longer", evil(&name(4097)), over!("pathBytes")),
        refused("a longer one elsewhere", evil(&"n".repeat(4097)), over!("pathBytes")),
        refused("a name of megabytes", evil(&name(4 << 20)), over!("headerBytes")),
        // Each folder costs look-ups and is remembered, which would be 4 MB for this one path.
        refused(
            "thousands of folders inside each other",
            evil(&deep),
            in_layer!(LayerError::Deep(_)),
        ),
        refused("long folders inside each other", evil(&wide), over!("treeBytes"))
            .with(|limits| limits.image.tree_bytes = 64 << 10),
    ]
}
