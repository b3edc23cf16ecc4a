//! One image for each kind of error, and for each kind of oddity that is read. The parsers test every form of them and all limits:
//! `oci` and `source` those of images, `fbc` and `render` those of FBC.

use bytes::Bytes;
use catalog_mirror_publish::PollError;
use render::RenderError;
use serde_json::{Value, json};
use source::{Error, FetchError, ImageError, LayerError, LinkError, ServerFault};
use tar::EntryType;
use testkit::{Image, Layer, digest, gzip, index};

use super::row::{Row, Then, fbc, good, image, in_image, in_layer, in_link, layer, over, reads, refused, rooted};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

pub(crate) fn rows() -> Vec<Row> {
    [layers(), links(), manifests(), indexes(), blobs(), catalogs(), odd()]
        .into_iter()
        .flatten()
        .collect()
}

fn of_image(trick: &'static str, image: Image, is_right: fn(&PollError) -> bool) -> Row {
    Row::new(trick, image, Then::Refused(is_right))
}

fn with_manifest(change: impl FnOnce(&mut Value)) -> Image {
    image([good()]).with_changed_manifest(change)
}

fn raw(bytes: impl Into<Vec<u8>>) -> Layer {
    Layer::new().raw(bytes.into())
}

fn layers() -> Vec<Row> {
    let not_utf8 = good().entry(EntryType::Regular, b"configs/\xff", b"", b"");
    let deep = good().file(&format!("configs/{}x", "d/".repeat(2000)), "");
    let sparse = good().entry(EntryType::GNUSparse, b"configs/x", b"", b"");
    let zeros = Layer::new().file("configs/zeros", vec![b' '; 4 << 20]);
    let cut = gzip(&good().tar()[..512 + 5]);
    vec![
        refused(
            "no archive",
            good().bytes(&[b'x'; 1024]),
            in_layer!(LayerError::Tar { .. }),
        ),
        refused(
            "an archive that breaks off",
            raw(cut),
            in_layer!(LayerError::Content { .. }),
        ),
        refused(
            "a broken stream",
            raw(&gzip(&good().tar())[..5]),
            in_layer!(LayerError::Format(_)),
        ),
        refused("xz", raw(*b"\xfd7zXZ\0rest"), in_layer!(LayerError::Compression(_))),
        refused(
            "a file twice",
            good().file("configs/good.yaml", ""),
            in_layer!(LayerError::Duplicate(_)),
        ),
        refused(
            "a name for the logs",
            good().file("configs/x\nERROR all is lost\u{1b}[2J", ""),
            in_layer!(LayerError::Unprintable(_)),
        ),
        refused("a name that is not UTF-8", not_utf8, in_layer!(LayerError::NotUtf8(_))),
        refused("folders inside each other", deep, in_layer!(LayerError::Deep(_))),
        refused(
            "a whiteout of nothing",
            good().file("configs/.wh.", ""),
            in_layer!(LayerError::Whiteout(_)),
        ),
        refused(
            "a device",
            good().entry(EntryType::Char, b"configs/zero", b"", b""),
            in_layer!(LayerError::Kind { .. }),
        ),
        refused("a sparse file", sparse, in_layer!(LayerError::Sparse(_))),
        refused("a bomb", zeros, over!("ratio")).with(|limits| {
            limits.image.ratio = 50;
            limits.image.ratio_floor_bytes = 1 << 20;
        }),
    ]
}

fn links() -> Vec<Row> {
    let symlink = |target: &str| good().symlink("configs/link.yaml", target);
    let replaced = image([good().hardlink("configs/link", "configs/good.yaml"), good()]);
    vec![
        refused(
            "symlink out of the catalog",
            symlink("/etc/passwd"),
            in_link!(LinkError::Outside(_)),
        ),
        refused(
            "hard link out of the catalog",
            good().hardlink("configs/link.yaml", "../etc/passwd"),
            in_link!(LinkError::Outside(_)),
        ),
        refused("symlink to itself", symlink("link.yaml"), in_link!(LinkError::Cycle(_))),
        refused(
            "symlink to nothing",
            symlink("\n\u{1b}[2J"),
            in_link!(LinkError::Broken(_)),
        ),
        refused("symlink to a folder", symlink("."), in_link!(LinkError::Directory(_))),
        of_image("hard link to what is gone", replaced, in_link!(LinkError::Replaced(_))),
    ]
}

fn manifests() -> Vec<Row> {
    let of = |body: &Value| Image::of_manifest(MANIFEST, Bytes::from(body.to_string()));
    let typed = |media_type: &str| {
        let media_type = json!(media_type);
        with_manifest(move |manifest| manifest["layers"][0]["mediaType"] = media_type)
    };
    // Nothing listens there, so a request would end with another error.
    let mut foreign = with_manifest(|manifest| {
        manifest["layers"][0]["mediaType"] = json!("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip");
        manifest["layers"][0]["urls"] = json!(["http://169.254.169.254/latest/meta-data", "http://127.0.0.1:1/x"]);
    });
    foreign.blobs.remove(&foreign.layers[0]);
    let artifact =
        with_manifest(|manifest| manifest["config"]["mediaType"] = json!("application/vnd.cncf.helm.config.v1+json"));
    vec![
        of_image(
            "not JSON",
            Image::of_manifest(MANIFEST, "<html>\n\u{1b}[2J".into()),
            in_image!(Error::Image(ImageError::Json { .. })),
        ),
        of_image(
            "schema 1",
            of(&json!({"schemaVersion": 1, "name": "x", "fsLayers": []})),
            in_image!(Error::Image(ImageError::Schema1(_))),
        ),
        of_image(
            "schema 3",
            with_manifest(|manifest| manifest["schemaVersion"] = json!(3)),
            in_image!(Error::Image(ImageError::SchemaVersion { version: 3, .. })),
        ),
        of_image(
            "an index and an image",
            of(&json!({"schemaVersion": 2, "layers": [], "manifests": []})),
            in_image!(Error::Image(ImageError::Ambiguous(_))),
        ),
        of_image(
            "neither",
            of(&json!({"schemaVersion": 2})),
            in_image!(Error::Image(ImageError::Unknown(_))),
        ),
        of_image(
            "an artifact",
            artifact,
            in_image!(Error::Image(ImageError::Artifact { .. })),
        ),
        of_image(
            "an unknown type of layer, of megabytes",
            typed(&"\u{1b}".repeat(100_000)),
            in_image!(Error::Image(ImageError::LayerType { .. })),
        ),
        of_image("a foreign layer that is elsewhere", foreign, |error| {
            is_server_fault(error, |fault| matches!(fault, ServerFault::NotFound { .. }))
        }),
        of_image(
            "a negative size",
            with_manifest(|manifest| manifest["layers"][0]["size"] = json!(-1)),
            in_image!(Error::Image(ImageError::NegativeSize(_))),
        ),
        of_image(
            "a digest that is a path",
            with_manifest(|manifest| manifest["layers"][0]["digest"] = json!("sha256:../../etc/passwd")),
            in_image!(Error::Image(ImageError::Digest { .. })),
        ),
        of_image(
            "no label",
            image([good()]).with_config("{}".to_owned()),
            in_image!(Error::Image(ImageError::NoLabel)),
        ),
        of_image(
            "a root out of the image",
            rooted("..", [good()]),
            in_image!(Error::Image(ImageError::RootEscapes(..))),
        ),
        of_image(
            "no root",
            rooted("/\n\u{1b}[2J\0", [good()]),
            in_image!(Error::Image(ImageError::NoRoot(_))),
        ),
        refused(
            "a root that is a symlink",
            layer("data/x.yaml", "evil").symlink("configs", "/data"),
            in_image!(Error::Image(ImageError::RootNotDirectory(_))),
        ),
    ]
}

fn indexes() -> Vec<Row> {
    let child = image([good()]);
    let wrapped = |times: usize| (0..times).fold(image([good()]), |inner, _| index(&[("linux/amd64", &inner)]));
    let lost = {
        let entry = json!({"mediaType": MANIFEST, "digest": digest(b"gone"), "size": 1, "platform": {"os": "linux", "architecture": "amd64"}});
        let body = json!({"schemaVersion": 2, "manifests": [entry]}).to_string();
        Image::of_manifest(INDEX, body.into())
    };
    let described = index(&[("linux/amd64", &child)]).with_changed_manifest(|index| {
        index["manifests"][0]["mediaType"] = json!("application/vnd.oci.image.layer.v1.tar");
    });
    vec![
        Row::new("an index in an index", wrapped(3), Then::Reads("good")),
        of_image(
            "indexes without end",
            wrapped(4),
            in_image!(Error::Image(ImageError::Nested(_))),
        ),
        of_image("an image that is not there", lost, |error| {
            is_server_fault(error, |fault| matches!(fault, ServerFault::NotFound { .. }))
        }),
        of_image(
            "no image for the platform",
            index(&[("linux/arm64", &child), ("\n\u{1b}[2J/x", &child)]),
            in_image!(Error::Image(ImageError::Platform { .. })),
        ),
        of_image(
            "the type of a layer",
            described,
            in_image!(Error::Image(ImageError::Descriptor { .. })),
        ),
    ]
}

fn is_server_fault(error: &PollError, is_right: fn(&ServerFault) -> bool) -> bool {
    matches!(error, PollError::Image(Error::Server(error)) if is_right(&error.fault))
}

/// Bytes that are not what the manifest says.
fn blobs() -> Vec<Row> {
    let size = image([good()]).blobs[&image([good()]).layers[0]].len();
    let of_layer = |size: usize| with_manifest(|manifest| manifest["layers"][0]["size"] = json!(size));
    vec![
        of_image(
            "a layer of another image",
            image([good()]).with_false_layer(vec![0; size]),
            in_image!(Error::Digest { what: "layer", .. }),
        ),
        of_image(
            "a layer that is longer",
            of_layer(size - 1),
            in_image!(Error::Size { .. }),
        ),
        of_image("a layer that is shorter", of_layer(size + 1), |error| {
            is_server_fault(error, |fault| {
                matches!(fault, ServerFault::Fetch(FetchError::Truncated { .. }))
            })
        }),
    ]
}

fn catalogs() -> Vec<Row> {
    let with = |content: &str| good().file("configs/x", content);
    vec![
        refused("no FBC", with("a: !!int \"\\e[2J\\n\"\n"), |error| {
            matches!(error, PollError::Render(RenderError::Invalid { .. }))
        }),
        refused(
            "an error of megabytes",
            with(&format!("{{\"v\": 1e{}}}", "9".repeat(1 << 20))),
            |error| matches!(error, PollError::Render(RenderError::Invalid { .. })),
        ),
        refused(
            "too many documents",
            with(&"{\"schema\":\"x\"}\n".repeat(100)),
            |error| matches!(error, PollError::Render(RenderError::Limit(limit)) if limit.name == "documents"),
        )
        .with(|limits| limits.catalog.documents = 50),
    ]
}

/// Oddities that catalogd reads too, and what must not be taken for a part of the catalog.
fn odd() -> Vec<Row> {
    let evil = |path: &str| good().file(path, fbc("evil"));
    let other_size = good()
        .pax(&[("size", b"1024")])
        .entry(EntryType::Link, b"etc/x", b"y", b"");
    vec![
        reads(
            "a path out of the image",
            evil("configs/../../configs/evil.yaml"),
            "good",
        ),
        reads("a path that comes back", evil("/../configs/evil.yaml"), "evil good"),
        reads(
            "a symlink that comes back",
            good().symlink("configs/link.yaml", "/../configs/./good.yaml"),
            "good",
        ),
        reads(
            "a link with a size",
            other_size.file("configs/evil.yaml", fbc("evil")),
            "evil good",
        ),
        reads(
            "entries after the end",
            good().bytes(&[0; 1024]).bytes(&evil("configs/evil.yaml").tar()),
            "good",
        ),
        reads("no end", good().open(), "good"),
        reads(
            "garbage after the stream",
            raw([gzip(&good().tar()), b"garbage".to_vec()].concat()),
            "good",
        ),
        Row::new("an empty layer", image([good(), raw(Vec::new())]), Then::Reads("good")),
        Row::new(
            "an opaque root",
            image([good(), layer("configs/x", "x").opaque("configs")]),
            Then::Reads("x"),
        ),
        Row::new(
            "a device that an upper layer hides",
            image([
                good().entry(EntryType::Fifo, b"configs/fifo", b"", b""),
                Layer::new().whiteout("configs/fifo"),
            ]),
            Then::Reads("good"),
        ),
    ]
}
