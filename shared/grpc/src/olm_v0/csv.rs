//! The ClusterServiceVersion that opm makes of `olm.csv.metadata`, as Go's `json.Marshal` writes it.
//!
//! The types are those of operator-framework/api v0.45.0, in the order of their fields. A field that no type has vanishes.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::value::RawValue;

use super::{
    go::{self, Wrong},
    json,
};

/// Type of a value.
#[derive(Clone, Copy)]
enum CsvType {
    Text,
    Bool,
    Int32,
    /// Any JSON, which is kept as it is. Only here null is a value.
    Raw,
    /// Object with texts under any keys.
    TextMap,
    List(&'static CsvType),
    Struct(&'static [CsvField]),
}

use CsvType::{Bool, Int32, List, Raw, Struct, Text, TextMap};

/// Field of a structure.
struct CsvField {
    name: &'static str,
    /// Name of the field that is read.
    source: &'static str,
    kind: CsvType,
    /// True if the field is absent when it is empty, as `omitempty` says. A structure never is.
    omit_empty: bool,
}

impl CsvField {
    /// Reads a field of another name.
    const fn of(self, source: &'static str) -> Self {
        Self { source, ..self }
    }
}

const fn always(name: &'static str, kind: CsvType) -> CsvField {
    CsvField {
        name,
        source: name,
        kind,
        omit_empty: false,
    }
}

const fn optional(name: &'static str, kind: CsvType) -> CsvField {
    CsvField {
        omit_empty: true,
        ..always(name, kind)
    }
}

const TEXTS: CsvType = List(&Text);
const LINK: CsvType = Struct(&[optional("name", Text), optional("url", Text)]);
const LINKS: CsvType = List(&LINK);
const MAINTAINERS: CsvType = List(&Struct(&[optional("name", Text), optional("email", Text)]));
const INSTALL_MODE_LIST: CsvType = List(&Struct(&[always("type", Text), always("supported", Bool)]));
const NATIVE_APIS: CsvType = List(&Struct(&[
    always("group", Text),
    always("version", Text),
    always("kind", Text),
]));
const RELATED_IMAGES: CsvType = List(&Struct(&[always("name", Text), always("image", Text)]));

const RESOURCES: CsvType = List(&Struct(&[
    always("name", Text),
    always("kind", Text),
    always("version", Text),
]));
const DESCRIPTORS: CsvType = List(&Struct(&[
    always("path", Text),
    optional("displayName", Text),
    optional("description", Text),
    optional("x-descriptors", TEXTS),
    optional("value", Raw),
]));
const CRDS: CsvType = List(&Struct(&[
    always("name", Text),
    always("version", Text),
    always("kind", Text),
    optional("displayName", Text),
    optional("description", Text),
    optional("resources", RESOURCES),
    optional("statusDescriptors", DESCRIPTORS),
    optional("specDescriptors", DESCRIPTORS),
    optional("actionDescriptors", DESCRIPTORS),
]));
const API_SERVICES: CsvType = List(&Struct(&[
    always("name", Text),
    always("group", Text),
    always("version", Text),
    always("kind", Text),
    optional("deploymentName", Text),
    optional("containerPort", Int32),
    optional("displayName", Text),
    optional("description", Text),
    optional("resources", RESOURCES),
    optional("statusDescriptors", DESCRIPTORS),
    optional("specDescriptors", DESCRIPTORS),
    optional("actionDescriptors", DESCRIPTORS),
]));
const OWNED_CRDS: CsvType = Struct(&[optional("owned", CRDS), optional("required", CRDS)]);
const OWNED_API_SERVICES: CsvType = Struct(&[optional("owned", API_SERVICES), optional("required", API_SERVICES)]);

/// Fields of `olm.csv.metadata` in the metadata of the ClusterServiceVersion.
const METADATA: &[CsvField] = &[optional("labels", TextMap), optional("annotations", TextMap)];
/// Fields of `olm.csv.metadata` in its spec.
const SPEC: &[CsvField] = &[
    optional("maturity", Text),
    always("customresourcedefinitions", OWNED_CRDS).of("crdDescriptions"),
    always("apiservicedefinitions", OWNED_API_SERVICES).of("apiServiceDefinitions"),
    optional("nativeAPIs", NATIVE_APIS),
    optional("minKubeVersion", Text),
    always("displayName", Text),
    optional(DESCRIPTION, Text),
    optional("keywords", TEXTS),
    optional("maintainers", MAINTAINERS),
    always("provider", LINK),
    optional("links", LINKS),
    optional(INSTALL_MODES, INSTALL_MODE_LIST),
];
const DESCRIPTION: &str = "description";
const INSTALL_MODES: &str = "installModes";

/// Values of a bundle and its package that are part of its ClusterServiceVersion.
#[derive(Clone, Copy)]
pub(crate) struct CsvSource<'a> {
    /// Name of the bundle.
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    /// Value of the property `olm.csv.metadata`.
    pub(crate) metadata: &'a str,
    pub(crate) related_images: Option<&'a RawValue>,
    pub(crate) package: &'a CsvPackage,
}

/// Values of an `olm.package` that are part of the ClusterServiceVersions of its bundles.
#[derive(Debug, Default)]
pub(crate) struct CsvPackage {
    /// Value of the field `icon`, as JSON.
    pub(crate) icon: Option<String>,
    description: Option<Box<RawValue>>,
}

/// ClusterServiceVersion without its icon, which is equal in all bundles of a package and can be longer than all other fields.
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
}

impl CsvSource<'_> {
    /// Makes the ClusterServiceVersion.
    pub(crate) fn csv(&self) -> Result<MadeCsv, Wrong> {
        let names: Vec<&str> = METADATA.iter().chain(SPEC).map(|field| field.source).collect();
        let mut values = vec![None; names.len()];
        go::find_fields(self.metadata, &names, &mut values)?;
        let (of_metadata, of_spec) = values.split_at(METADATA.len());

        let mut out = String::with_capacity(self.metadata.len() + 512);
        out.push_str(r#"{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":"#);
        let mut metadata = StructWriter::new(&mut out);
        if !self.name.is_empty() {
            json::string(self.name, metadata.field("name"));
        }
        for (field, value) in METADATA.iter().zip(of_metadata) {
            metadata.write(field, *value)?;
        }
        metadata.end();
        out.push_str(r#","spec":"#);
        let mut spec = StructWriter::new(&mut out);
        // OLM's package server writes into this structure, so opm makes it.
        let install = r#"{"strategy":"deployment","spec":{"deployments":null}}"#;
        spec.field("install").push_str(install);
        json::string(self.version, spec.field("version"));
        let mut icon_at = None;
        for (field, value) in SPEC.iter().zip(of_spec) {
            let value = match field.name {
                DESCRIPTION if is_empty(Text, *value) => self.package.description.as_deref(),
                _ => *value,
            };
            if field.name == INSTALL_MODES && self.package.icon.is_some() {
                icon_at = Some(spec.field("icon").len());
            }
            spec.write(field, value)?;
        }
        spec.field("cleanup").push_str(r#"{"enabled":false}"#);
        spec.write(&optional("relatedImages", RELATED_IMAGES), self.related_images)?;
        spec.end();
        out.push_str(r#","status":{"cleanup":{}}}"#);
        Ok(MadeCsv { json: out, icon_at })
    }
}

fn icon_json(icon: &RawValue) -> Result<String, Wrong> {
    let [data, media_type] = go::fields(icon.get(), &["base64data", "mediatype"])?;
    let data = data.map(go::bytes).transpose()?;
    let media_type = go::text(media_type)?;
    let mut out = r#"[{"base64data":""#.to_owned();
    STANDARD.encode_string(data.unwrap_or_default(), &mut out);
    out.push_str(r#"","mediatype":"#);
    json::string(&media_type, &mut out);
    out.push_str("}]");
    Ok(out)
}

/// Writes the fields of a structure.
struct StructWriter<'o> {
    out: &'o mut String,
    separator: char,
}

impl<'o> StructWriter<'o> {
    fn new(out: &'o mut String) -> Self {
        let separator = '{';
        Self { out, separator }
    }

    /// Begins a field. Its value is appended to the returned text.
    fn field(&mut self, name: &str) -> &mut String {
        self.out.push(std::mem::replace(&mut self.separator, ','));
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        self.out
    }

    fn write(&mut self, field: &CsvField, value: Option<&RawValue>) -> Result<(), Wrong> {
        if field.omit_empty && is_empty(field.kind, value) {
            return Ok(());
        }
        write(field.kind, value, self.field(field.name))
    }

    fn end(self) {
        self.out.push_str(if self.separator == '{' { "{}" } else { "}" });
    }
}

/// Returns true for a value that `omitempty` leaves out.
fn is_empty(kind: CsvType, value: Option<&RawValue>) -> bool {
    let Some(value) = value else {
        return !matches!(kind, Struct(_));
    };
    match (kind, value.get()) {
        (Raw | Struct(_), _) => false,
        (_, "null") => true,
        (Text, text) => text == "\"\"",
        (Bool, text) => text == "false",
        (Int32, text) => text.parse() == Ok(0_i32),
        (TextMap, text) => text == "{}",
        (List(_), text) => text == "[]",
    }
}

/// Writes a value, or the empty value of its type for null and for nothing.
fn write(kind: CsvType, value: Option<&RawValue>, out: &mut String) -> Result<(), Wrong> {
    let raw = value.map_or("null", RawValue::get);
    match kind {
        Text => json::string(&go::text(value)?, out),
        Raw => json::escape_html(raw, out),
        Bool => match raw {
            "true" | "false" => out.push_str(raw),
            "null" => out.push_str("false"),
            _ => return Err("must be true or false".to_owned()),
        },
        Int32 => {
            let number: i32 = raw.parse().map_err(|_| "must be an integer of 32 bits")?;
            out.push_str(&number.to_string());
        }
        TextMap => {
            // The keys of canonical lines are sorted as Go sorts them.
            let mut separator = '{';
            go::entries(raw, |key, value| {
                out.push(std::mem::replace(&mut separator, ','));
                json::string(&key, out);
                out.push(':');
                write(Text, Some(value), out)
            })?;
            out.push('}');
        }
        List(kind) => {
            let mut separator = '[';
            go::elements(raw, |element| {
                out.push(std::mem::replace(&mut separator, ','));
                write(*kind, Some(element), out)
            })?;
            out.push(']');
        }
        Struct(fields) => {
            let names: Vec<&str> = fields.iter().map(|field| field.source).collect();
            let mut values = vec![None; names.len()];
            go::find_fields(raw, &names, &mut values)?;
            let mut writer = StructWriter::new(out);
            for (field, value) in fields.iter().zip(values) {
                writer.write(field, value)?;
            }
            writer.end();
        }
    }
    Ok(())
}
