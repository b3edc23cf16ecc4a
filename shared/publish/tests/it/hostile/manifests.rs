//! Manifests, indexes and configs that lie, and what they name.

use bytes::Bytes;
use catalog_mirror_publish::PollError;
use serde_json::{Value, json};
use source::{Error, FetchError, ImageError, ServerFault};
use testkit::{Image, Layer, digest, index};

use super::row::{Row, Then, fbc, good, image, in_image, over, rooted};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

pub(crate) fn rows() -> Vec<Row> {
    [blobs(), types(), lists(), documents(), indexes(), labels()]
        .into_iter()
        .flatten()
        .collect()
}

fn refused(trick: &'static str, image: Image, is_right: fn(&PollError) -> bool) -> Row {
    Row::new(trick, image, Then::Refused(is_right))
}

fn reads(trick: &'static str, image: Image) -> Row {
    Row::new(trick, image, Then::Reads("good"))
}

fn with_manifest(change: impl FnOnce(&mut Value)) -> Image {
    image([good()]).with_changed_manifest(change)
}

fn is_registry_fault(error: &PollError, is_right: fn(&ServerFault) -> bool) -> bool {
    matches!(error, PollError::Image(Error::Server(error)) if is_right(&error.fault))
}

fn is_absent(error: &PollError) -> bool {
    is_registry_fault(error, |fault| matches!(fault, ServerFault::NotFound { .. }))
}

fn is_cut(error: &PollError) -> bool {
    is_registry_fault(error, |fault| {
        matches!(fault, ServerFault::Fetch(FetchError::Truncated { .. }))
    })
}

/// Digests and sizes that are wrong.
fn blobs() -> Vec<Row> {
    let size = in_image!(Error::Size { .. });
    let of_layer = |size: i64| with_manifest(|manifest| manifest["layers"][0]["size"] = json!(size));
    let of_config = |size: i64| with_manifest(|manifest| manifest["config"]["size"] = json!(size));
    let layer_size = i64::try_from(image([good()]).blobs[&image([good()]).layers[0]].len()).unwrap();
    let other_config = {
        let mut image = image([good()]);
        let config = image
            .blobs
            .keys()
            .find(|digest| **digest != image.layers[0])
            .unwrap()
            .clone();
        let same_size = vec![b' '; image.blobs[&config].len()];
        image.blobs.insert(config, same_size.into());
        image
    };
    let flipped = {
        let image = image([good()]);
        let mut bytes = image.blobs[&image.layers[0]].to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        image.with_false_layer(bytes)
    };
    vec![
        refused(
            "a layer of another digest",
            flipped,
            in_image!(Error::Digest { what: "layer", .. }),
        ),
        refused(
            "a layer of another image",
            image([good()]).with_false_layer(vec![0; layer_size as usize]),
            in_image!(Error::Digest { .. }),
        ),
        refused(
            "a config of another digest",
            other_config,
            in_image!(Error::Digest { what: "config", .. }),
        ),
        refused("a layer that is longer", of_layer(layer_size - 1), size),
        refused("a layer that is shorter", of_layer(layer_size + 1), is_cut),
        refused(
            "a layer of no bytes",
            of_layer(0),
            in_image!(Error::Digest { .. } | Error::Size { .. } | Error::Image(ImageError::NoRoot(_))),
        ),
        refused("a config that is longer", of_config(10), size),
        refused("a config that is shorter", of_config(9999), size),
        refused(
            "a negative size",
            of_layer(-1),
            in_image!(Error::Image(ImageError::NegativeSize(_))),
        ),
        refused("an absurd size", of_layer(i64::MAX), over!("compressedBytes")),
        refused(
            "a layer larger than allowed",
            of_layer((8 << 30) + 1),
            over!("compressedBytes"),
        ),
        refused(
            "a layer without digest",
            with_manifest(|manifest| manifest["layers"][0]["digest"] = json!("")),
            in_image!(Error::Image(ImageError::Digest { .. })),
        ),
        refused(
            "a digest that is a path",
            with_manifest(|manifest| manifest["layers"][0]["digest"] = json!("sha256:../../etc/passwd")),
            in_image!(Error::Image(ImageError::Digest { .. })),
        ),
        refused(
            "a digest of another algorithm",
            with_manifest(|manifest| manifest["config"]["digest"] = json!("md5:d41d8cd98f00b204e9800998ecf8427e")),
            in_image!(Error::Image(ImageError::Digest { .. })),
        ),
        refused(
            "a digest of megabytes",
            with_manifest(|manifest| manifest["config"]["digest"] = json!("\n".repeat(1 << 20))),
            in_image!(Error::Image(ImageError::Digest { .. })),
        ),
    ]
}

fn types() -> Vec<Row> {
    let typed = |media_type: &str| {
        let media_type = json!(media_type);
        with_manifest(move |manifest| manifest["layers"][0]["mediaType"] = media_type)
    };
    let layer_type = in_image!(Error::Image(ImageError::LayerType { .. }));
    let artifact = in_image!(Error::Image(ImageError::Artifact { .. }));
    let foreign = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
    // Nothing listens there, so a request would end with another error.
    let elsewhere = |image: Image| {
        image.with_changed_manifest(|manifest| {
            manifest["layers"][0]["mediaType"] = json!(foreign);
            manifest["layers"][0]["urls"] = json!(["http://169.254.169.254/latest/meta-data", "http://127.0.0.1:1/x"]);
        })
    };
    let lost = {
        let mut image = image([good()]);
        image.blobs.remove(&image.layers[0]);
        image
    };
    vec![
        refused(
            "a config as a layer",
            typed("application/vnd.oci.image.config.v1+json"),
            layer_type,
        ),
        refused("an unknown type of layer", typed("application/x-starling"), layer_type),
        refused(
            "a type that starts well",
            typed("application/vnd.oci.image.layer.v1.tarball"),
            layer_type,
        ),
        refused(
            "an encrypted layer",
            typed("application/vnd.oci.image.layer.v1.tar+gzip+encrypted"),
            layer_type,
        ),
        refused(
            "an attestation as a layer",
            typed("application/vnd.in-toto+json"),
            layer_type,
        ),
        refused("a type of megabytes", typed(&"\u{1b}".repeat(100_000)), layer_type),
        reads("a layer of no type", typed("")),
        reads("a foreign layer that is here", elsewhere(image([good()]))),
        refused("a foreign layer that is elsewhere", elsewhere(lost), is_absent),
        refused(
            "a layer as the config",
            with_manifest(|manifest| manifest["config"]["mediaType"] = json!("application/vnd.oci.image.layer.v1.tar")),
            artifact,
        ),
        refused(
            "an artifact",
            with_manifest(|manifest| {
                manifest["config"]["mediaType"] = json!("application/vnd.cncf.helm.config.v1+json");
            }),
            artifact,
        ),
    ]
}

/// Manifests that lie about their layers.
fn lists() -> Vec<Row> {
    let layers =
        |change: fn(&mut Vec<Value>)| with_manifest(|manifest| change(manifest["layers"].as_array_mut().unwrap()));
    vec![
        refused(
            "a layer that is not there",
            layers(|layers| layers.push(descriptor(&"0".repeat(64)))),
            is_absent,
        ),
        refused(
            "no layers",
            layers(Vec::clear),
            in_image!(Error::Image(ImageError::NoRoot(_))),
        ),
        refused(
            "10,000 layers",
            layers(|layers| layers.resize_with(10_000, || descriptor(&"0".repeat(64)))),
            over!("layers"),
        ),
        refused(
            "layers that are no list",
            with_manifest(|manifest| manifest["layers"] = json!("all")),
            in_image!(Error::Image(ImageError::Json { .. })),
        ),
        reads(
            "a layer 200 times",
            layers(|layers| layers.resize(200, layers[0].clone())),
        ),
        refused(
            "the config as a layer, of the right type",
            with_manifest(|manifest| {
                manifest["layers"][0]["digest"] = manifest["config"]["digest"].clone();
                manifest["layers"][0]["size"] = manifest["config"]["size"].clone();
            }),
            in_image!(Error::Layer { .. }),
        ),
    ]
}

fn descriptor(hex: &str) -> Value {
    json!({"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": format!("sha256:{hex}"), "size": 1})
}

fn documents() -> Vec<Row> {
    let of = |body: Value| Image::of_manifest(MANIFEST, Bytes::from(body.to_string()));
    let json = in_image!(Error::Image(ImageError::Json { .. }));
    let deep = format!("{{\"layers\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let padded = Image::of_manifest(MANIFEST, vec![b' '; (4 << 20) + 1].into());
    vec![
        refused(
            "schema 1",
            of(json!({"schemaVersion": 1, "name": "x", "fsLayers": []})),
            in_image!(Error::Image(ImageError::Schema1(_))),
        ),
        refused(
            "an index and an image",
            of(json!({"schemaVersion": 2, "layers": [], "manifests": []})),
            in_image!(Error::Image(ImageError::Ambiguous(_))),
        ),
        refused(
            "an image that calls itself an index",
            with_manifest(|manifest| manifest["mediaType"] = json!(INDEX)),
            in_image!(Error::Image(ImageError::Ambiguous(_))),
        ),
        refused(
            "schema 3",
            with_manifest(|manifest| manifest["schemaVersion"] = json!(3)),
            in_image!(Error::Image(ImageError::SchemaVersion { version: 3, .. })),
        ),
        refused(
            "neither",
            of(json!({"schemaVersion": 2})),
            in_image!(Error::Image(ImageError::Unknown(_))),
        ),
        refused("a list", of(json!([1, 2])), json),
        refused(
            "not JSON",
            Image::of_manifest(MANIFEST, "<html>\n\u{1b}[2J".into()),
            json,
        ),
        refused("nothing", Image::of_manifest(MANIFEST, Bytes::new()), json),
        refused("deeply nested", Image::of_manifest(MANIFEST, deep.into()), json),
        refused(
            "a text of megabytes",
            of(json!({"schemaVersion": "x".repeat(1 << 20)})),
            json,
        ),
        refused("larger than allowed", padded, over!("manifestBytes")),
        refused(
            "two lists of layers",
            Image::of_manifest(MANIFEST, "{\"layers\":[],\"layers\":[]}".into()),
            json,
        ),
    ]
}

/// An index that names these digests.
fn index_of(digests: &[&str]) -> Image {
    let entry = |digest: &&str| json!({"mediaType": MANIFEST, "digest": digest, "size": 1, "platform": {"os": "linux", "architecture": "amd64"}});
    let entries: Vec<_> = digests.iter().map(entry).collect();
    Image::of_manifest(
        INDEX,
        json!({"schemaVersion": 2, "manifests": entries}).to_string().into(),
    )
}

fn indexes() -> Vec<Row> {
    let wrapped = |times: usize| (0..times).fold(image([good()]), |inner, _| index(&[("linux/amd64", &inner)]));
    // No index can hold its own hash, so its registry has to lie.
    let own = {
        let name = digest(b"the index itself");
        let mut index = index_of(&[&name]);
        let body = index.manifest().clone();
        index.manifests.insert(name, (INDEX.to_owned(), body));
        index
    };
    let false_child = {
        let child = image([good()]);
        let mut index = index(&[("linux/amd64", &child)]);
        let other = image([Layer::new().file("configs/x", fbc("evil"))]);
        index
            .manifests
            .insert(child.digest, (MANIFEST.to_owned(), other.manifest().clone()));
        index.blobs.extend(other.blobs);
        index
    };
    let platform = in_image!(Error::Image(ImageError::Platform { .. }));
    let descriptor = in_image!(Error::Image(ImageError::Descriptor { .. }));
    let described = |field: &str, value: Value| {
        let (field, child) = (field.to_owned(), image([good()]));
        index(&[("linux/amd64", &child)]).with_changed_manifest(move |index| index["manifests"][0][field] = value)
    };
    let child = image([good()]);
    let many: Vec<_> = (0..20_000).map(|_| ("linux/s390x", &child)).collect();
    vec![
        reads("three times", wrapped(3)),
        refused("too often", wrapped(4), in_image!(Error::Image(ImageError::Nested(_)))),
        refused("itself", own, in_image!(Error::Digest { what: "manifest", .. })),
        refused(
            "another image than it says",
            false_child,
            in_image!(Error::Digest { what: "manifest", .. }),
        ),
        refused("an image that is not there", index_of(&[&digest(b"gone")]), is_absent),
        refused(
            "a digest that is a path",
            index_of(&["sha256:../../x"]),
            in_image!(Error::Image(ImageError::Digest { .. })),
        ),
        refused(
            "a size of 5",
            described("size", json!(5)),
            in_image!(Error::Size { what: "manifest", .. }),
        ),
        refused("a size of -5", described("size", json!(-5)), descriptor),
        refused(
            "the type of a layer",
            described("mediaType", json!("application/vnd.oci.image.layer.v1.tar")),
            descriptor,
        ),
        refused("nothing", index_of(&[]), platform),
        refused(
            "no image for the platform",
            index(&[("linux/arm64", &child), ("plan9/amd64", &child)]),
            platform,
        ),
        refused("twenty thousand other platforms", index(&many), platform)
            .with(|limits| limits.image.manifest_bytes = 64 << 20),
        refused(
            "a platform of control characters",
            index(&[("\n\u{1b}[2J/x", &child), ("\n/y", &child)]),
            platform,
        ),
    ]
}

/// Labels of the config that name the catalog's folder.
fn labels() -> Vec<Row> {
    let at = |root: &str| rooted(root, [good()]);
    let escapes = in_image!(Error::Image(ImageError::RootEscapes(_)));
    let nothing = in_image!(Error::Image(ImageError::NoRoot(_)));
    let config = |body: &str| image([good()]).with_config(body.to_owned());
    let json = in_image!(Error::Image(ImageError::Json { .. }));
    let no_label = in_image!(Error::Image(ImageError::NoLabel));
    vec![
        reads("spelled differently", at("//etc/..//./configs/")),
        reads("relative", at("configs")),
        reads("empty is the whole image", at("")),
        reads("above the root is the root", at("/../..")),
        refused("out of the image", at(".."), escapes),
        refused("out of the image later", at("configs/../../etc"), escapes),
        refused("a folder that is not there", at("/proc/self"), nothing),
        refused("control characters", at("/\n\u{1b}[2J\0"), nothing),
        refused("very long", at(&"x".repeat(4097)), over!("pathBytes")),
        refused("very deep", at(&"x/".repeat(2000)), nothing),
        refused("no label", config("{\"config\":{\"Labels\":{}}}"), no_label),
        refused("no labels", config("{}"), no_label),
        refused("labels that are a list", config("{\"config\":{\"Labels\":[]}}"), json),
        refused(
            "a label that is no text",
            config("{\"config\":{\"Labels\":{\"operators.operatorframework.io.index.configs.v1\":1}}}"),
            json,
        ),
        refused("not JSON", config("\u{1b}[2J"), json),
        refused("nothing", config(""), json),
        refused(
            "larger than allowed",
            config(&" ".repeat((8 << 20) + 1)),
            over!("configBytes"),
        ),
    ]
}
