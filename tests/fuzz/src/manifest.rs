use arbitrary::{Result, Unstructured};
use serde_json::{Value, json};
use source::Error;
use testkit::{Image, ImageBuilder, Layer};

use crate::{images::read, memory, yaml::CHOICES};

/// Memory for each byte of a manifest, and for reading a small image.
const RATIO: usize = 32;
const FLOOR: usize = 4 << 20;

/// Maximum size of an error in bytes: 4,000 characters, each of which may be escaped.
const ERROR_BYTES: usize = 41 << 10;

thread_local! {
    static BASE: Image = ImageBuilder::catalog("/configs").layer(Layer::new().file("configs/a.yaml", "a: 1\n")).build();
}

/// Reads an image by a manifest or an index, given as JSON or as choices of the grammar: an
/// accepted one is sound and has the files of its layers; an error is one short line without
/// control characters; memory is bounded.
///
/// # Panics
/// If not.
pub(crate) fn manifest(input: &[u8]) {
    let base = BASE.with(Image::clone);
    let body = match input {
        [CHOICES, choices @ ..] => match document(&mut Unstructured::new(choices), &base) {
            Ok(document) => document.to_string().into_bytes(),
            Err(_) => return,
        },
        input => input.to_vec(),
    };
    let mut image = Image::of_manifest(
        "application/vnd.oci.image.manifest.v1+json",
        body.clone().into(),
    );
    image.blobs = base.blobs;
    image.manifests.extend(base.manifests);
    let about = format!(
        "{:?}",
        String::from_utf8_lossy(&body[..body.len().min(1000)])
    );
    let seen = memory::within(RATIO * body.len() + FLOOR, &about, || read(&image));
    match seen {
        Ok(seen) => {
            let document: Value = serde_json::from_slice(&body).expect("only JSON is accepted");
            check(&document, &about);
            let mut contents = seen.contents().into_iter();
            let is_known =
                |(path, content): (String, Vec<u8>)| path == "a.yaml" && content == b"a: 1\n";
            assert!(contents.all(is_known), "{about}");
        }
        Err(error) => check_error(&error, &about),
    }
}

/// Checks an accepted document: one kind, a known version, and sizes that are sizes.
fn check(document: &Value, about: &str) {
    let has = |name: &str| !document[name].is_null();
    let version = document["schemaVersion"].as_u64();
    assert!(version.is_none_or(|version| version == 2), "{about}");
    assert!(
        has("manifests") != (has("layers") || has("config")),
        "{about}"
    );
    for layer in document["layers"].as_array().into_iter().flatten() {
        assert!(
            layer["size"].as_i64().is_some_and(|size| size >= 0),
            "{about}"
        );
    }
}

/// Checks that an error is one short line as people see it.
fn check_error(error: &Error, about: &str) {
    let text = model::text::error_line(error);
    assert!(
        !text.chars().any(model::text::is_unprintable),
        "{text:?} about {about}"
    );
    assert!(
        text.len() <= ERROR_BYTES,
        "{} bytes about {about}: {text}",
        text.len()
    );
}

/// Returns a manifest or an index in which most fields are right.
fn document(choices: &mut Unstructured<'_>, base: &Image) -> Result<Value> {
    let mut document: Value = serde_json::from_slice(base.manifest()).expect("a manifest is JSON");
    let own =
        json!({"mediaType": base.media_type, "digest": base.digest, "size": base.manifest().len()});
    if choices.ratio(1, 2)? {
        document = json!({"schemaVersion": 2, "manifests": [own]});
        for _ in 0..choices.int_in_range(0..=2)? {
            let mut entry = own.clone();
            entry["platform"] = json!({"os": odd(choices)?, "architecture": *choices.choose(&["amd64", "arm64", "unknown"])?});
            change(choices, &mut entry)?;
            document["manifests"]
                .as_array_mut()
                .expect("a list")
                .push(entry);
        }
    } else if choices.ratio(1, 2)? {
        let path = *choices.choose(&["/config", "/layers/0"])?;
        change(
            choices,
            document.pointer_mut(path).expect("the manifest has it"),
        )?;
    }
    for _ in 0..choices.int_in_range(0..=2)? {
        document[name(choices, FIELDS)?] = odd(choices)?;
    }
    if choices.ratio(1, 8)? {
        let list = if document["layers"].is_array() {
            "layers"
        } else {
            "manifests"
        };
        let times = choices.int_in_range(0..=2000)?;
        if let Some(list) = document[list].as_array_mut()
            && let Some(first) = list.first().cloned()
        {
            list.resize(times, first);
        }
    }
    Ok(document)
}

/// Changes a field of a descriptor.
fn change(choices: &mut Unstructured<'_>, descriptor: &mut Value) -> Result<()> {
    if choices.ratio(2, 3)? {
        descriptor[name(choices, OF_DESCRIPTORS)?] = odd(choices)?;
    }
    Ok(())
}

/// Fields of manifests and indexes, and of descriptors.
const FIELDS: &str =
    "schemaVersion mediaType artifactType subject annotations layers manifests config fsLayers x";
const OF_DESCRIPTORS: &str = "mediaType digest size platform annotations artifactType urls data";

fn name(choices: &mut Unstructured<'_>, names: &'static str) -> Result<&'static str> {
    let names: Vec<&str> = names.split(' ').collect();
    choices.choose(&names).copied()
}

/// Returns a value that some field may have, and others should not.
fn odd(choices: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match choices.int_in_range(0..=15)? {
        0 => Value::Null,
        1 => json!(*choices.choose(&[0_i64, 1, 2, 3, 5, -5, i64::MAX])?),
        2 => json!("linux"),
        3 => json!("a\nb\u{1b}[31m\u{202e}"),
        4 => json!("x".repeat(choices.int_in_range(0..=5000)?)),
        5 => json!("application/vnd.oci.image.layer.v1.tar+gzip"),
        6 => json!("application/vnd.oci.image.index.v1+json"),
        7 => json!("application/vnd.oci.image.manifest.v1+json"),
        8 => json!("application/vnd.in-toto+json"),
        9 => json!(testkit::digest(b"x")),
        10 => json!("sha256:\u{7}"),
        11 => json!([]),
        12 => json!({}),
        13 => json!({"vnd.docker.reference.type": "attestation-manifest"}),
        14 => json!({"os": "a\r", "architecture": "b"}),
        _ => json!([[[{"a": [true, 1.5, "\u{0}"]}]]]),
    })
}
