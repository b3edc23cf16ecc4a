//! One image for each kind of error that its parser has no test of, or whose text could harm the log, and for each kind of oddity that is
//! read. The parsers test every form of them and all limits: `oci` and `source` those of images, `fbc` and `render` those of FBC.

use serde_json::{Value, json};
use tar::EntryType;
use testkit::{Image, Layer, digest, gzip, index};

use crate::site::{fbc, image, layer, rooted};

/// A trick, its image, and the error or the packages that are published.
pub(crate) type Row = (&'static str, Image, &'static str);

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
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
    let many = "{\"schema\":\"x\"}\n".repeat(100);
    let number = format!("{{\"v\": 1e{}}}", "9".repeat(1 << 20));
    let log_line = with("configs/x\nERROR all is lost\u{1b}[2J");
    let folders = with(&format!("configs/{}x", "d/".repeat(2000)));
    let not_text = entry(EntryType::Regular, b"configs/\xff");
    let sparse = entry(EntryType::GNUSparse, b"configs/x");
    vec![
        ("a broken stream", raw(&gzip(&good().tar())[..5]), "layer format"),
        ("a name for the logs", log_line, "layer unprintable"),
        ("a name that is not UTF-8", not_text, "layer not utf8"),
        ("folders inside each other", folders, "layer deep"),
        ("a whiteout of nothing", with("configs/.wh."), "layer whiteout"),
        ("a device", entry(EntryType::Char, b"configs/zero"), "layer kind"),
        ("a sparse file", sparse, "layer sparse"),
        ("a bomb", content(&" ".repeat(4 << 20)), "limit ratio"),
        ("symlink to nothing", symlink("\n\u{1b}[2J"), "link broken"),
        ("no FBC", content("a: !!int \"\\e[2J\\n\"\n"), "render invalid"),
        ("an error of megabytes", content(&number), "render invalid"),
        ("too many documents", content(&many), "render limit documents"),
    ]
}

fn images() -> Vec<Row> {
    let set = |at: &str, value: Value| {
        image([good()]).with_changed_manifest(|manifest| *manifest.pointer_mut(at).unwrap() = value)
    };
    let child = image([good()]);
    let size = child.blobs[&child.layers[0]].len();
    let lost = {
        let entry = json!({"mediaType": MANIFEST, "digest": digest(b"gone"), "size": 1, "platform": {"os": "linux", "architecture": "amd64"}});
        let body = json!({"schemaVersion": 2, "manifests": [entry]}).to_string();
        Image::of_manifest(INDEX, body.into())
    };
    let page = Image::of_manifest(MANIFEST, "<html>\n\u{1b}[2J".into());
    let long_type = set("/layers/0/mediaType", json!("\u{1b}".repeat(100_000)));
    let path = set("/layers/0/digest", json!("sha256:../../etc/passwd"));
    // Bytes that are not what the manifest says.
    let other_layer = child.clone().with_false_layer(vec![0; size]);
    let others = index(&[("linux/arm64", &child), ("\n\u{1b}[2J/x", &child)]);
    vec![
        ("not JSON", page, "image json"),
        ("an unknown type of layer, of megabytes", long_type, "image manifest"),
        ("a digest that is a path", path, "image digest"),
        ("no label", child.with_config("{}".to_owned()), "image no label"),
        ("a root out of the image", rooted("..", [good()]), "image root escapes"),
        ("no root", rooted("/\n\u{1b}[2J\0", [good()]), "image no root"),
        ("an image that is not there", lost, "not found"),
        ("no image for the platform", others, "image platform"),
        ("a layer of another image", other_layer, "digest of layer"),
    ]
}

/// Oddities that catalogd reads too, and what must not be taken for a part of the catalog.
pub(crate) fn read() -> Vec<Row> {
    let evil = |path: &str| good().file(path, fbc("evil"));
    let path_out = image([evil("configs/../../configs/evil.yaml")]);
    let path_back = image([evil("/../configs/evil.yaml")]);
    let link = good().symlink("configs/link.yaml", "/../configs/./good.yaml");
    let other_size = good()
        .pax_text(EntryType::XHeader, b"13 size=1024\n")
        .entry(EntryType::Link, b"etc/x", b"y", b"")
        .file("configs/evil.yaml", fbc("evil"));
    let after = raw(gzip(&[good().tar(), evil("configs/evil.yaml").tar()].concat()));
    let mut no_end = good().tar();
    no_end.truncate(no_end.len() - 1024);
    let garbage = raw([gzip(&good().tar()), b"garbage".to_vec()].concat());
    let opaque = layer("configs/x", "x").opaque("configs");
    let device = good().entry(EntryType::Fifo, b"configs/fifo", b"", b"");
    let hides = Layer::new().whiteout("configs/fifo");
    let nested = (0..3).fold(image([good()]), |inner, _| index(&[("linux/amd64", &inner)]));
    vec![
        ("a path out of the image", path_out, "good"),
        ("a path that comes back", path_back, "evil good"),
        ("a symlink that comes back", image([link]), "good"),
        ("a link with a size", image([other_size]), "evil good"),
        ("entries after the end", image([after]), "good"),
        ("no end", image([raw(gzip(&no_end))]), "good"),
        ("garbage after the stream", image([garbage]), "good"),
        ("an empty layer", image([good(), raw(Vec::new())]), "good"),
        ("an opaque root", image([good(), opaque]), "x"),
        ("a device that an upper layer hides", image([device, hides]), "good"),
        ("an index in an index", nested, "good"),
    ]
}
