//! Whiteouts, which remove files of lower layers.

use source::{Error, ImageError, LayerError};
use tar::EntryType;
use testkit::Layer;

use super::row::{Row, Then, fbc, good, image, in_image, in_layer, layer, reads, refused};

pub(crate) fn rows() -> Vec<Row> {
    [malformed(), roots(), same_layer()].into_iter().flatten().collect()
}

/// A lower layer with a package named good, and this one over it.
fn over_good(trick: &'static str, upper: Layer, then: Then) -> Row {
    Row::new(trick, image([good(), upper]), then)
}

fn malformed() -> Vec<Row> {
    let malformed = in_layer!(LayerError::Whiteout(_));
    let none = Layer::new;
    vec![
        refused("of nothing", good().file("configs/.wh.", ""), malformed),
        refused("of the folder itself", good().file("configs/.wh..", ""), malformed),
        refused("of the folder above", good().file("configs/.wh...", ""), malformed),
        refused("of nothing, beside the root", good().file(".wh.", ""), malformed),
        over_good(
            "out of the image",
            none().file("../.wh.configs", ""),
            Then::Reads("good"),
        ),
        over_good("elsewhere", none().file("etc/.wh.configs", ""), Then::Reads("good")),
        over_good(
            "bookkeeping of aufs",
            none().file("configs/.wh..wh.plnk", ""),
            Then::Reads("good"),
        ),
        over_good(
            "a folder that looks like one",
            layer("configs/.wh.good.yaml/x", "x"),
            Then::Reads("good x"),
        ),
        over_good(
            "with a line feed",
            none().file("configs/.wh.\n", ""),
            Then::Refused(in_layer!(LayerError::Unprintable(_))),
        ),
    ]
}

fn roots() -> Vec<Row> {
    let gone = Then::Refused(in_image!(Error::Image(ImageError::NoRoot(_))));
    let none = Layer::new;
    vec![
        over_good("of the root", none().file(".wh.configs", ""), gone),
        over_good(
            "of the root, spelled differently",
            none().file("configs/../.wh.configs", "").file("configs/x", fbc("x")),
            Then::Reads("x"),
        ),
        over_good(
            "opaque root",
            layer("configs/x", "x").opaque("configs"),
            Then::Reads("x"),
        ),
        over_good(
            "opaque image",
            layer("configs/x", "x").file(".wh..wh..opq", ""),
            Then::Reads("x"),
        ),
        over_good(
            "opaque twice",
            layer("configs/x", "x").opaque("configs").opaque("configs"),
            Then::Reads("x"),
        ),
        over_good(
            "as a folder with a content",
            none()
                .entry(EntryType::Directory, b".wh.configs/", b"", b"")
                .file("configs/x", fbc("x")),
            Then::Reads("x"),
        ),
    ]
}

fn same_layer() -> Vec<Row> {
    vec![
        reads(
            "before its file",
            Layer::new().whiteout("configs/x").file("configs/x", fbc("x")),
            "x",
        ),
        reads(
            "after its file",
            Layer::new().file("configs/x", fbc("x")).whiteout("configs/x"),
            "x",
        ),
        reads(
            "opaque after the files",
            layer("configs/d/x", "x").opaque("configs/d"),
            "x",
        ),
        over_good(
            "of a whiteout",
            Layer::new().file("configs/.wh..wh.good.yaml", ""),
            Then::Reads("good"),
        ),
        over_good(
            "replaced by a file of that name",
            layer("configs/good.yaml", "new").whiteout("configs/good.yaml"),
            Then::Reads("new"),
        ),
    ]
}
