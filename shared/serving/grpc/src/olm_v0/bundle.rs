//! A bundle: its line, read once, and the message of it. Fields have the numbers of `Bundle` in
//! `proto/registry.proto`.

use std::borrow::Cow;

use prost::encoding::{WireType, encode_key, encode_varint, message, string};
use serde_json::value::RawValue;

use super::api::{GroupVersionKind, TypedValue};
use super::go::{self, Wrong};
use super::record::{BundleRecord, LineRange};
use super::{answers::BundlePlace, json};

const PROVIDED_TAG: u32 = 7;
const REQUIRED_TAG: u32 = 8;
const DEPENDENCY_TAG: u32 = 11;
const PROPERTY_TAG: u32 = 12;

/// Message of a bundle in one channel, encoded in the order of its fields, as Go does. Its
/// manifests stand between the two parts.
pub struct BundleMessage {
    /// Names of the bundle, its package and the channel.
    pub(crate) names: Vec<u8>,
    /// All that follows the manifests.
    pub(crate) facts: Vec<u8>,
}

impl BundlePlace<'_> {
    /// Returns the message of the bundle. Only `ListBundles` says what the entry replaces.
    pub fn message(&self, is_listed: bool) -> BundleMessage {
        let bundle = self.bundle();
        let entry = self.entry;
        let mut names = Vec::new();
        text(1, &bundle.name, &mut names);
        text(2, &self.package.name, &mut names);
        text(3, &self.channel.name, &mut names);
        let mut facts = Vec::with_capacity(bundle.texts());
        text(6, &bundle.image, &mut facts);
        facts.extend_from_slice(&bundle.apis);
        text(9, &bundle.version, &mut facts);
        text(10, &entry.skip_range, &mut facts);
        facts.extend_from_slice(&bundle.properties);
        if is_listed {
            text(13, &entry.replaces, &mut facts);
            string::encode_repeated(14, &entry.skips, &mut facts);
        }
        if let Some(deprecation) = &bundle.deprecation {
            message::encode(15, deprecation, &mut facts);
        }
        BundleMessage { names, facts }
    }
}

/// Appends a field, which is left out if it is empty.
fn text(tag: u32, value: &str, out: &mut Vec<u8>) {
    if !value.is_empty() {
        encode_key(tag, WireType::LengthDelimited, out);
        encode_varint(value.len() as u64, out);
        out.extend_from_slice(value.as_bytes());
    }
}

/// Returns the record of a bundle.
pub(crate) fn read_bundle_line(text: &str, line: LineRange) -> Result<BundleRecord, Wrong> {
    let [name, image, properties] = go::fields(text, &["name", "image", "properties"])?;
    let mut found = Found::default();
    go::elements(properties.map_or("null", RawValue::get), |property| {
        let [kind, value] = go::fields(property.get(), &["type", "value"])?;
        match &*go::text(kind)? {
            "olm.csv.metadata" | "olm.bundle.object" => Ok(()),
            kind => found.property(kind, value.map_or("", RawValue::get)),
        }
    })?;
    Ok(BundleRecord {
        name: go::text(name)?.into_owned(),
        version: found.version,
        line,
        image: go::text(image)?.into_owned(),
        apis: [found.provided, found.required].concat(),
        properties: [found.dependencies, found.properties].concat(),
        deprecation: None,
    })
}

/// Facts of a bundle from its properties. All but the version are encoded fields: as structures,
/// millions of `{}` would take ten times the line.
#[derive(Default)]
struct Found {
    version: String,
    provided: Vec<u8>,
    required: Vec<u8>,
    dependencies: Vec<u8>,
    properties: Vec<u8>,
}

impl Found {
    fn property(&mut self, kind: &str, value: &str) -> Result<(), Wrong> {
        match kind {
            "olm.package" => {
                let [version] = texts(value, &["version"])?;
                self.version = version.into_owned();
            }
            "olm.gvk" => gvk(PROVIDED_TAG, value, &mut self.provided)?,
            "olm.gvk.required" => {
                gvk(REQUIRED_TAG, value, &mut self.required)?;
                typed_value(DEPENDENCY_TAG, "olm.gvk", value, &mut self.dependencies);
            }
            "olm.package.required" => {
                let [name, range] = texts(value, &["packageName", "versionRange"])?;
                let dependency = format!(
                    r#"{{"packageName":{},"version":{}}}"#,
                    json::plain(&name),
                    json::plain(&range)
                );
                typed_value(
                    DEPENDENCY_TAG,
                    "olm.package",
                    &dependency,
                    &mut self.dependencies,
                );
            }
            _ => {}
        }
        typed_value(PROPERTY_TAG, kind, value, &mut self.properties);
        Ok(())
    }
}

fn gvk(tag: u32, value: &str, out: &mut Vec<u8>) -> Result<(), Wrong> {
    let [group, version, kind] = texts(value, &["group", "version", "kind"])?.map(Cow::into_owned);
    message::encode(
        tag,
        &GroupVersionKind {
            group,
            version,
            kind,
        },
        out,
    );
    Ok(())
}

fn typed_value(tag: u32, kind: &str, value: &str, out: &mut Vec<u8>) {
    let typed = TypedValue {
        r#type: kind.to_owned(),
        value: value.to_owned(),
    };
    message::encode(tag, &typed, out);
}

/// Returns the texts of the fields of an object.
pub(crate) fn texts<'a, const N: usize>(
    raw: &'a str,
    names: &[&str; N],
) -> Result<[Cow<'a, str>; N], Wrong> {
    let fields = go::fields(raw, names)?;
    let mut texts = [const { Cow::Borrowed("") }; N];
    for (slot, field) in texts.iter_mut().zip(fields) {
        *slot = go::text(field)?;
    }
    Ok(texts)
}
