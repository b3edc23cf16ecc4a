//! Manifests of a bundle as JSON: those inside of it (`olm.bundle.object`), and the
//! ClusterServiceVersion that opm makes of `olm.csv.metadata`, as Go's `json.Marshal` writes it.
//!
//! The types are those of operator-framework/api v0.45.0, in the order of their fields. A field
//! that no type has vanishes.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use olm::{CSV_METADATA, ICON, RELATED_IMAGES, Shape, ShapeField};
use serde_json::value::RawValue;

use super::go::{self, Wrong};
use super::{json, record::BundleRecord};

/// Number of the fields of `olm.csv.metadata` in the metadata of the ClusterServiceVersion. The
/// others are in its spec.
const METADATA_FIELDS: usize = 2;

/// Values of an `olm.package` that are part of the ClusterServiceVersions of its bundles.
#[derive(Debug, Default)]
pub(crate) struct CsvPackage {
    /// Value of the field `icon`, as JSON.
    pub(crate) icon: Option<String>,
    description: Option<Box<RawValue>>,
}

/// ClusterServiceVersion without its icon, which is equal in all bundles of a package and can be
/// longer than all other fields.
pub(crate) struct MadeCsv {
    pub(crate) json: String,
    /// Offset at which the value of the icon is left out, if there is one.
    pub(crate) icon_at: Option<usize>,
}

impl CsvPackage {
    /// Reads the line of an `olm.package`.
    pub(crate) fn read(line: &str) -> Result<Self, Wrong> {
        let [icon, description] = go::fields(line, &["icon", "description"])?;
        Ok(Self {
            icon: icon.and_then(go::present).map(icon_json).transpose()?,
            description: description.map(RawValue::to_owned),
        })
    }

    /// Makes the ClusterServiceVersion of a bundle of the package from the value of its property
    /// `olm.csv.metadata`.
    pub(crate) fn csv(
        &self,
        bundle: &BundleRecord,
        metadata: &str,
        related_images: Option<&RawValue>,
    ) -> Result<MadeCsv, Wrong> {
        let mut fields = values(metadata, CSV_METADATA)?;
        let mut out = String::with_capacity(metadata.len() + 512);
        out.push_str(r#"{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":"#);
        let mut writer = PartsWriter::new(&mut out, '{');
        if !bundle.name.is_empty() {
            json::string(&bundle.name, writer.field("name"));
        }
        for (field, value) in fields.by_ref().take(METADATA_FIELDS) {
            writer.write(&field, value)?;
        }
        writer.end('}');
        out.push_str(r#","spec":"#);
        let mut spec = PartsWriter::new(&mut out, '{');
        // OLM's package server writes into this structure, so opm makes it.
        let install = r#"{"strategy":"deployment","spec":{"deployments":null}}"#;
        spec.field("install").push_str(install);
        json::string(&bundle.version, spec.field("version"));
        let mut icon_at = None;
        for (mut field, mut value) in fields {
            match field.name {
                "crdDescriptions" => field.name = "customresourcedefinitions",
                "apiServiceDefinitions" => field.name = "apiservicedefinitions",
                "description" if is_empty(field.shape, value) => {
                    value = self.description.as_deref();
                }
                "installModes" if self.icon.is_some() => icon_at = Some(spec.field("icon").len()),
                _ => {}
            }
            spec.write(&field, value)?;
        }
        spec.field("cleanup").push_str(r#"{"enabled":false}"#);
        if !is_empty(RELATED_IMAGES, related_images) {
            write(RELATED_IMAGES, related_images, spec.field("relatedImages"))?;
        }
        spec.end('}');
        out.push_str(r#","status":{"cleanup":{}}}"#);
        Ok(MadeCsv { json: out, icon_at })
    }
}

fn icon_json(icon: &RawValue) -> Result<String, Wrong> {
    let mut out = "[".to_owned();
    write(ICON, Some(icon), &mut out)?;
    out.push(']');
    Ok(out)
}

/// Writes the fields of a structure or the elements of a list, with a comma between two of them.
struct PartsWriter<'o> {
    out: &'o mut String,
    /// Text before the next part: the opening bracket, then commas.
    separator: char,
}

impl<'o> PartsWriter<'o> {
    fn new(out: &'o mut String, open: char) -> Self {
        Self {
            out,
            separator: open,
        }
    }

    /// Begins an element, which is appended to the returned text.
    fn next(&mut self) -> &mut String {
        self.out.push(std::mem::replace(&mut self.separator, ','));
        self.out
    }

    /// Begins a field. Its value is appended to the returned text.
    fn field(&mut self, name: &str) -> &mut String {
        json::string(name, self.next());
        self.out.push(':');
        self.out
    }

    fn write(&mut self, field: &ShapeField, value: Option<&RawValue>) -> Result<(), Wrong> {
        if field.omit_empty && is_empty(field.shape, value) {
            return Ok(());
        }
        write(field.shape, value, self.field(field.name))
    }

    fn end(self, close: char) {
        if self.separator != ',' {
            self.out.push(self.separator);
        }
        self.out.push(close);
    }
}

/// Returns the fields of an object with their values.
fn values<'a>(
    raw: &'a str,
    fields: &'static [ShapeField],
) -> Result<impl Iterator<Item = (ShapeField, Option<&'a RawValue>)>, Wrong> {
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    let mut values = vec![None; names.len()];
    go::find_fields(raw, &names, &mut values)?;
    Ok(fields.iter().copied().zip(values))
}

/// Returns true for a value that `omitempty` leaves out. A structure never is. Null is a value only
/// where any fits.
fn is_empty(shape: Shape, value: Option<&RawValue>) -> bool {
    let Some(value) = value else {
        return !matches!(shape, Shape::Object(_));
    };
    match (shape, value.get()) {
        (Shape::Any | Shape::PropertyValue | Shape::Object(_), _) => false,
        (_, "null") => true,
        (Shape::Text | Shape::Bytes, text) => text == "\"\"",
        (Shape::Bool, text) => text == "false",
        (Shape::Integer(_), text) => text.parse() == Ok(0_i32),
        (Shape::Map(_), text) => text == "{}",
        (Shape::List(_), text) => text == "[]",
    }
}

/// Writes a value, or the empty value of its type for null and for nothing. Any other JSON is kept
/// as it is.
fn write(shape: Shape, value: Option<&RawValue>, out: &mut String) -> Result<(), Wrong> {
    let raw = value.map_or("null", RawValue::get);
    match shape {
        Shape::Text => json::string(&go::text(value)?, out),
        Shape::Any | Shape::PropertyValue => json::escape_html(raw, out),
        Shape::Bytes => {
            let bytes = value.map(go::bytes).transpose()?;
            json::string(&STANDARD.encode(bytes.unwrap_or_default()), out);
        }
        Shape::Bool => match raw {
            "true" | "false" => out.push_str(raw),
            "null" => out.push_str("false"),
            _ => return Err("must be true or false".to_owned()),
        },
        Shape::Integer(_) => {
            let number: i32 = raw.parse().map_err(|_| "must be an integer of 32 bits")?;
            out.push_str(&number.to_string());
        }
        Shape::Map(shape) => {
            let mut map = PartsWriter::new(out, '{');
            // The keys of canonical lines are sorted as Go sorts them.
            go::entries(raw, |key, value| {
                write(*shape, Some(value), map.field(&key))
            })?;
            map.end('}');
        }
        Shape::List(shape) => {
            let mut list = PartsWriter::new(out, '[');
            go::elements(raw, |element| write(*shape, Some(element), list.next()))?;
            list.end(']');
        }
        Shape::Object(fields) => {
            let mut writer = PartsWriter::new(out, '{');
            for (field, value) in values(raw, fields)? {
                writer.write(&field, value)?;
            }
            writer.end('}');
        }
    }
    Ok(())
}

/// Returns the object in the value of a property `olm.bundle.object`. JSON stays as it is, and YAML
/// becomes JSON. `data` is that of the property before: opm decodes each of them into the same
/// variable, so one without data repeats it.
pub(crate) fn read_object(value: &str, data: &mut Vec<u8>) -> Result<String, Wrong> {
    if let [Some(own)] = go::fields(value, &["data"])? {
        *data = go::bytes(own)?;
    }
    // apimachinery takes such a text for JSON.
    let json = std::str::from_utf8(data).ok();
    if let Some(json) = json.filter(|text| text.trim_start().starts_with('{')) {
        return Ok(json.to_owned());
    }
    let json = fbc::yaml_to_json(data).map_err(|error| error.to_string())?;
    let mut out = String::with_capacity(json.len());
    json::escape_html(&json, &mut out);
    Ok(out)
}

const CSV_KIND: &str = "ClusterServiceVersion";

/// Returns true for an object whose kind is ClusterServiceVersion. opm reads JSON as YAML here.
pub(crate) fn is_csv(object: &str) -> bool {
    if !is_go_yaml(object) {
        return false;
    }
    if let Ok(kind) = kind(object) {
        return kind == CSV_KIND;
    }
    // What starts like JSON may still be YAML.
    let json = fbc::yaml_to_json(object.as_bytes());
    json.is_ok_and(|json| kind(&json).is_ok_and(|kind| kind == CSV_KIND))
}

fn kind(json: &str) -> Result<Cow<'_, str>, Wrong> {
    let mut kind: Option<&RawValue> = None;
    go::entries(json, |key, value| {
        if key == "kind" {
            kind = Some(value);
        }
        Ok(())
    })?;
    // Any other value than a text counts as none.
    Ok(go::text(kind).unwrap_or_default())
}

/// Returns false for JSON that go-yaml v2 does not read: with `\/`, with a surrogate pair, or with
/// a character that is not printable.
fn is_go_yaml(json: &str) -> bool {
    let mut escapes = json.split('\\').skip(1);
    let mut readable = true;
    while let Some(escape) = escapes.next() {
        match escape.as_bytes() {
            // An escaped backslash: the next part is no escape.
            [] => drop(escapes.next()),
            [b'/', ..]
            | [
                b'u',
                b'd' | b'D',
                b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F',
                ..,
            ] => readable = false,
            _ => {}
        }
    }
    readable && json.chars().all(is_printable)
}

/// True for the characters that YAML 1.1 allows.
const fn is_printable(char: char) -> bool {
    matches!(
        char,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..
    )
}
