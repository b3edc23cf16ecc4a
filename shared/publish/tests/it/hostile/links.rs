//! Links, devices, and what stands where the catalog should.

use catalog_mirror_publish::PollError;
use render::RenderError;
use source::{Error, ImageError, LayerError, LinkError};
use tar::EntryType;
use testkit::Layer;

use super::row::{Row, Then, fbc, good, image, in_image, in_layer, in_link, layer, over, reads, refused, rooted};

pub(crate) fn rows() -> Vec<Row> {
    [escapes(), nowhere(), many(), roots(), devices()]
        .into_iter()
        .flatten()
        .collect()
}

fn symlink(target: &str) -> Layer {
    good().symlink("configs/link.yaml", target)
}

fn hardlink(target: &str) -> Layer {
    good().hardlink("configs/link.yaml", target)
}

fn escapes() -> Vec<Row> {
    let outside = in_link!(LinkError::Outside(_));
    vec![
        refused("symlink, relative", symlink("../etc/passwd"), outside),
        refused("symlink, absolute", symlink("/etc/passwd"), outside),
        refused("symlink above the root", symlink("../../../../etc/passwd"), outside),
        refused(
            "symlink to a file of the image",
            symlink("../etc/x").file("etc/x", fbc("evil")),
            outside,
        ),
        refused("symlink to proc", symlink("/proc/self/environ"), outside),
        refused(
            "symlink in steps",
            symlink("a").symlink("configs/a", "b").symlink("configs/b", "/etc/x"),
            outside,
        ),
        refused(
            "symlink through a folder",
            symlink("d/x").symlink("configs/d", "/etc"),
            outside,
        ),
        refused("hard link, relative", hardlink("../etc/passwd"), outside),
        refused("hard link, absolute", hardlink("/etc/passwd"), outside),
        refused(
            "hard link to a file of the image",
            hardlink("etc/x").file("etc/x", fbc("evil")),
            outside,
        ),
        refused(
            "hard link to a symlink that leads out",
            hardlink("configs/s").symlink("configs/s", "/etc/x"),
            outside,
        ),
        refused(
            "a file behind a symlink",
            good().symlink("configs/d", "/etc").file("configs/d/x", ""),
            in_layer!(LayerError::Duplicate(_)),
        ),
        reads(
            "symlink that comes back",
            symlink("/../configs/../configs/./good.yaml"),
            "good",
        ),
        // Another folder might be a link itself.
        refused(
            "symlink that comes back from elsewhere",
            symlink("/etc/../configs/good.yaml"),
            outside,
        ),
    ]
}

fn nowhere() -> Vec<Row> {
    let circle = in_link!(LinkError::Cycle(_));
    let chain = |length: usize| {
        let first = good().symlink("configs/l0", "good.yaml");
        (1..length).fold(first, |layer, at| {
            layer.symlink(&format!("configs/l{at}"), &format!("l{}", at - 1))
        })
    };
    vec![
        refused("symlink to itself", symlink("link.yaml"), circle),
        refused(
            "symlinks in a circle",
            symlink("b").symlink("configs/b", "link.yaml"),
            circle,
        ),
        refused(
            "hard links in a circle",
            hardlink("configs/b").hardlink("configs/b", "configs/link.yaml"),
            circle,
        ),
        refused(
            "a folder in a circle",
            symlink("d/d/d/x").symlink("configs/d", "."),
            in_link!(LinkError::Directory(_)),
        ),
        reads("as many steps as Linux takes", chain(39), "good"),
        refused("more steps than Linux takes", chain(60), circle),
        refused(
            "symlink to nothing",
            symlink("\n\u{1b}[2J"),
            in_link!(LinkError::Broken(_)),
        ),
        refused("symlink to a folder", symlink("."), in_link!(LinkError::Directory(_))),
        Row::new(
            "hard link to what an upper layer replaced",
            image([good().hardlink("configs/link", "configs/good.yaml"), good()]),
            Then::Refused(in_link!(LinkError::Replaced(_))),
        ),
        refused("a long target", symlink(&"x".repeat(4097)), over!("pathBytes")),
        refused(
            "ignore file as a link",
            good().symlink("configs/.indexignore", "good.yaml"),
            |error| matches!(error, PollError::Render(RenderError::Invalid { .. })),
        ),
    ]
}

/// Little in the image, much to do.
fn many() -> Vec<Row> {
    let target = format!("{}x", "d/../".repeat(500));
    let walks = (0..30).fold(good().file("configs/d/f", "").file("configs/x", ""), |layer, at| {
        layer.symlink(&format!("configs/s{at}"), &target)
    });
    let documents = fbc("a") + &"---\n{}\n".repeat(200);
    let copies = (0..200).fold(good().file("configs/many", documents), |layer, at| {
        layer.symlink(&format!("configs/s{at}"), "many")
    });
    vec![
        refused("links that walk about", walks, over!("linkSteps")).with(|limits| limits.image.link_steps = 10_000),
        refused(
            "many links to many documents",
            copies,
            |error| matches!(error, PollError::Render(RenderError::Limit(limit)) if limit.name == "documents"),
        )
        .with(|limits| limits.catalog.documents = 10_000),
    ]
}

fn roots() -> Vec<Row> {
    let no_folder = in_image!(Error::Image(ImageError::RootNotDirectory(_)));
    let nothing = in_image!(Error::Image(ImageError::NoRoot(_)));
    let data = || layer("data/x.yaml", "evil");
    vec![
        refused("a symlink", data().symlink("configs", "/data"), no_folder),
        refused("a symlink to outside", data().symlink("configs", "/etc"), no_folder),
        refused("a hard link", data().hardlink("configs", "data"), no_folder),
        refused("a file", Layer::new().file("configs", fbc("evil")), no_folder),
        refused(
            "a device",
            Layer::new().entry(EntryType::Char, b"configs", b"", b""),
            no_folder,
        ),
        refused("nothing", data(), nothing),
        Row::new(
            "a folder above is a symlink",
            rooted("/var/fbc", [layer("var/fbc/x", "old"), data().symlink("var", "/data")]),
            Then::Refused(nothing),
        ),
        Row::new(
            "a symlink over a catalog",
            image([good(), data().symlink("configs", "/data")]),
            Then::Refused(no_folder),
        ),
    ]
}

fn devices() -> Vec<Row> {
    let odd = in_layer!(LayerError::Kind { .. });
    let entry = |kind, path: &str| good().entry(kind, path.as_bytes(), b"", b"");
    vec![
        refused("character device", entry(EntryType::Char, "configs/zero"), odd),
        refused("block device", entry(EntryType::Block, "configs/sda"), odd),
        refused("fifo", entry(EntryType::Fifo, "configs/fifo"), odd),
        refused("a contiguous file", entry(EntryType::Continuous, "configs/file"), odd),
        refused("an unknown type", entry(EntryType::new(b'Z'), "configs/z"), odd),
        reads("elsewhere", entry(EntryType::Char, "dev/zero"), "good"),
        Row::new(
            "hidden by an upper layer",
            image([
                entry(EntryType::Fifo, "configs/fifo"),
                Layer::new().whiteout("configs/fifo"),
            ]),
            Then::Reads("good"),
        ),
    ]
}
