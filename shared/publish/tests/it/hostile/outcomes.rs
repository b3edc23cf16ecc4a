//! One image for each kind of error, and for each kind of oddity that is read. The parsers test every form of them and all limits:
//! `oci` and `source` those of images, `fbc` and `render` those of FBC.

use bytes::Bytes;
use serde_json::{Value, json};
use tar::EntryType;
use testkit::{Image, Layer, digest, gzip, index};

use super::row::{fbc, good, image, layer, rooted};

/// A trick, its image, and the error or the packages that are published.
pub(crate) type Row = (&'static str, Image, &'static str);

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Images that are not published, with their errors as [`super::error_name`] calls them.
pub(crate) fn refused() -> Vec<Row> {
    let layers = layers().into_iter();
    let layers = layers.map(|(trick, layer, error)| (trick, image([layer]), error));
    layers.chain(manifests()).chain(indexes()).chain(blobs()).collect()
}

fn with_manifest(change: impl FnOnce(&mut Value)) -> Image {
    image([good()]).with_changed_manifest(change)
}

fn raw(bytes: impl Into<Vec<u8>>) -> Layer {
    Layer::new().raw(bytes.into())
}

fn layers() -> Vec<(&'static str, Layer, &'static str)> {
    let with = |path: &str| good().file(path, "");
    let entry = |kind, path: &[u8]| good().entry(kind, path, b"", b"");
    let symlink = |target: &str| good().symlink("configs/link.yaml", target);
    let hardlink = |target: &str| good().hardlink("configs/link.yaml", target);
    let content = |content: &str| good().file("configs/x", content);
    let many = "{\"schema\":\"x\"}\n".repeat(100);
    let number = format!("{{\"v\": 1e{}}}", "9".repeat(1 << 20));
    vec![
        ("no archive", good().bytes(&[b'x'; 1024]), "layer tar"),
        (
            "an archive that breaks off",
            raw(gzip(&good().tar()[..512 + 5])),
            "layer content",
        ),
        ("a broken stream", raw(&gzip(&good().tar())[..5]), "layer format"),
        ("xz", raw(*b"\xfd7zXZ\0rest"), "layer compression"),
        ("a file twice", with("configs/good.yaml"), "layer duplicate"),
        (
            "a name for the logs",
            with("configs/x\nERROR all is lost\u{1b}[2J"),
            "layer unprintable",
        ),
        (
            "a name that is not UTF-8",
            entry(EntryType::Regular, b"configs/\xff"),
            "layer not utf8",
        ),
        (
            "folders inside each other",
            with(&format!("configs/{}x", "d/".repeat(2000))),
            "layer deep",
        ),
        ("a whiteout of nothing", with("configs/.wh."), "layer whiteout"),
        ("a device", entry(EntryType::Char, b"configs/zero"), "layer kind"),
        (
            "a sparse file",
            entry(EntryType::GNUSparse, b"configs/x"),
            "layer sparse",
        ),
        ("a bomb", content(&" ".repeat(4 << 20)), "limit ratio"),
        ("symlink out of the catalog", symlink("/etc/passwd"), "link outside"),
        (
            "hard link out of the catalog",
            hardlink("../etc/passwd"),
            "link outside",
        ),
        ("symlink to itself", symlink("link.yaml"), "link cycle"),
        ("symlink to nothing", symlink("\n\u{1b}[2J"), "link broken"),
        ("symlink to a folder", symlink("."), "link directory"),
        (
            "a root that is a symlink",
            layer("data/x.yaml", "evil").symlink("configs", "/data"),
            "image root not directory",
        ),
        ("no FBC", content("a: !!int \"\\e[2J\\n\"\n"), "render invalid"),
        ("an error of megabytes", content(&number), "render invalid"),
        ("too many documents", content(&many), "render limit documents"),
    ]
}

fn manifests() -> Vec<Row> {
    let of = |body: &Value| Image::of_manifest(MANIFEST, Bytes::from(body.to_string()));
    let set = |at: &str, value: Value| with_manifest(|manifest| *manifest.pointer_mut(at).unwrap() = value);
    let layer_type = "/layers/0/mediaType";
    // Nothing listens there, so a request would end with another error.
    let mut foreign = with_manifest(|manifest| {
        manifest["layers"][0]["mediaType"] = json!("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip");
        manifest["layers"][0]["urls"] = json!(["http://169.254.169.254/latest/meta-data", "http://127.0.0.1:1/x"]);
    });
    foreign.blobs.remove(&foreign.layers[0]);
    let artifact = set("/config/mediaType", json!("application/vnd.cncf.helm.config.v1+json"));
    let replaced = image([good().hardlink("configs/link", "configs/good.yaml"), good()]);
    let ambiguous = json!({"schemaVersion": 2, "layers": [], "manifests": []});
    vec![
        ("hard link to what is gone", replaced, "link replaced"),
        (
            "not JSON",
            Image::of_manifest(MANIFEST, "<html>\n\u{1b}[2J".into()),
            "image json",
        ),
        (
            "schema 1",
            of(&json!({"schemaVersion": 1, "name": "x", "fsLayers": []})),
            "image schema1",
        ),
        ("schema 3", set("/schemaVersion", json!(3)), "image schema version"),
        ("an index and an image", of(&ambiguous), "image ambiguous"),
        ("neither", of(&json!({"schemaVersion": 2})), "image unknown"),
        ("an artifact", artifact, "image artifact"),
        (
            "an unknown type of layer, of megabytes",
            set(layer_type, json!("\u{1b}".repeat(100_000))),
            "image layer type",
        ),
        ("a foreign layer that is elsewhere", foreign, "not found"),
        (
            "a negative size",
            set("/layers/0/size", json!(-1)),
            "image negative size",
        ),
        (
            "a digest that is a path",
            set("/layers/0/digest", json!("sha256:../../etc/passwd")),
            "image digest",
        ),
        (
            "no label",
            image([good()]).with_config("{}".to_owned()),
            "image no label",
        ),
        ("a root out of the image", rooted("..", [good()]), "image root escapes"),
        ("no root", rooted("/\n\u{1b}[2J\0", [good()]), "image no root"),
    ]
}

fn wrapped(times: usize) -> Image {
    (0..times).fold(image([good()]), |inner, _| index(&[("linux/amd64", &inner)]))
}

fn indexes() -> Vec<Row> {
    let child = image([good()]);
    let lost = {
        let entry = json!({"mediaType": MANIFEST, "digest": digest(b"gone"), "size": 1, "platform": {"os": "linux", "architecture": "amd64"}});
        let body = json!({"schemaVersion": 2, "manifests": [entry]}).to_string();
        Image::of_manifest(INDEX, body.into())
    };
    let described = wrapped(1).with_changed_manifest(|index| {
        index["manifests"][0]["mediaType"] = json!("application/vnd.oci.image.layer.v1.tar");
    });
    let others = index(&[("linux/arm64", &child), ("\n\u{1b}[2J/x", &child)]);
    vec![
        ("indexes without end", wrapped(4), "image nested"),
        ("an image that is not there", lost, "not found"),
        ("no image for the platform", others, "image platform"),
        ("the type of a layer", described, "image descriptor"),
    ]
}

/// Bytes that are not what the manifest says.
fn blobs() -> Vec<Row> {
    let size = image([good()]).blobs[&image([good()]).layers[0]].len();
    let of_layer = |size: usize| with_manifest(|manifest| manifest["layers"][0]["size"] = json!(size));
    let other = image([good()]).with_false_layer(vec![0; size]);
    vec![
        ("a layer of another image", other, "digest of layer"),
        ("a layer that is longer", of_layer(size - 1), "size"),
        ("a layer that is shorter", of_layer(size + 1), "truncated"),
    ]
}

/// Oddities that catalogd reads too, and what must not be taken for a part of the catalog.
pub(crate) fn read() -> Vec<Row> {
    let evil = |path: &str| good().file(path, fbc("evil"));
    let link = good().symlink("configs/link.yaml", "/../configs/./good.yaml");
    let other_size = good()
        .pax(&[("size", b"1024")])
        .entry(EntryType::Link, b"etc/x", b"y", b"")
        .file("configs/evil.yaml", fbc("evil"));
    let after = good().bytes(&[0; 1024]).bytes(&evil("configs/evil.yaml").tar());
    let garbage = raw([gzip(&good().tar()), b"garbage".to_vec()].concat());
    let opaque = layer("configs/x", "x").opaque("configs");
    let device = good().entry(EntryType::Fifo, b"configs/fifo", b"", b"");
    let hides = Layer::new().whiteout("configs/fifo");
    vec![
        (
            "a path out of the image",
            image([evil("configs/../../configs/evil.yaml")]),
            "good",
        ),
        (
            "a path that comes back",
            image([evil("/../configs/evil.yaml")]),
            "evil good",
        ),
        ("a symlink that comes back", image([link]), "good"),
        ("a link with a size", image([other_size]), "evil good"),
        ("entries after the end", image([after]), "good"),
        ("no end", image([good().open()]), "good"),
        ("garbage after the stream", image([garbage]), "good"),
        ("an empty layer", image([good(), raw(Vec::new())]), "good"),
        ("an opaque root", image([good(), opaque]), "x"),
        ("a device that an upper layer hides", image([device, hides]), "good"),
        ("an index in an index", wrapped(3), "good"),
    ]
}
