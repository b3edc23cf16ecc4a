//! Documents of a bundle's files, and fields in them that know their place.

use fbc::{Chunks, FbcLimits, Meta};
use serde_json::Value;

use crate::{BundleError, BundleFolder, FILE_BYTES_MAX};

/// Maximum depth of nested objects and lists. Real CRDs reach 60; the JSON parser, which recurses, ends at 128.
const DEPTH_MAX: usize = 120;
/// Longest text of an error about a field, in characters.
const ERROR_CHARS: usize = 400;

/// One document of a file.
#[derive(Debug)]
pub(crate) struct BundleManifest {
    /// File in the bundle, with the number of the document if it is not the first.
    pub(crate) file: String,
    /// Size as compact JSON, in bytes: about what etcd stores.
    pub(crate) bytes: usize,
    pub(crate) value: Value,
}

/// Value in a document. A missing one is null, as Kubernetes reads it.
#[derive(Debug, Clone)]
pub(crate) struct ManifestField<'a> {
    file: &'a str,
    /// Path in the document, such as `spec.versions[0].name`.
    path: String,
    pub(crate) value: &'a Value,
}

/// Parses all documents of the files.
pub(crate) fn parse(folder: &BundleFolder) -> Result<Vec<BundleManifest>, BundleError> {
    let limits = FbcLimits {
        document_bytes: FILE_BYTES_MAX,
        depth: DEPTH_MAX,
        alias_bytes: FILE_BYTES_MAX,
        ..FbcLimits::default()
    };
    let mut manifests = Vec::new();
    for (name, bytes) in &folder.files {
        let mut add = |meta: Meta<'_>| {
            let file = match meta.position.document {
                1 => name.clone(),
                number => format!("{name}, document {number}"),
            };
            // The line is canonical JSON within the depth, so it is never refused.
            let value = serde_json::from_slice(meta.line).unwrap_or_default();
            let bytes = meta.line.len();
            manifests.push(BundleManifest { file, bytes, value });
        };
        for chunk in Chunks::new(bytes.as_slice(), limits, FILE_BYTES_MAX) {
            let parsed = chunk.and_then(|chunk| chunk.metas(&limits, &mut add));
            parsed.map_err(|source| BundleError::Malformed {
                file: name.clone(),
                source,
            })?;
        }
    }
    Ok(manifests)
}

impl BundleManifest {
    /// Returns the field at a path of keys, such as `spec.install`.
    pub(crate) fn at(&self, keys: &str) -> Result<ManifestField<'_>, BundleError> {
        let (file, path, value) = (&self.file, String::new(), &self.value);
        ManifestField { file, path, value }.at(keys)
    }

    /// Returns the kind, and the empty text if it has none.
    pub(crate) fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }
}

impl<'a> ManifestField<'a> {
    pub(crate) fn at(&self, keys: &str) -> Result<Self, BundleError> {
        let mut field = self.clone();
        for key in keys.split('.') {
            field.value = match field.value {
                Value::Object(fields) => fields.get(key).unwrap_or(&Value::Null),
                Value::Null => &Value::Null,
                _ => return Err(field.error("must be an object")),
            };
            field.path = [&field.path, key].map(ToOwned::to_owned).join(".");
        }
        Ok(field)
    }

    pub(crate) fn items(&self) -> Result<Vec<Self>, BundleError> {
        let items = match self.value {
            Value::Array(items) => items.as_slice(),
            Value::Null => &[],
            _ => return Err(self.error("must be a list")),
        };
        let path = |at| format!("{}[{at}]", self.path);
        let items = items.iter().enumerate();
        Ok(items
            .map(|(at, value)| Self {
                path: path(at),
                value,
                ..*self
            })
            .collect())
    }

    pub(crate) fn text(&self) -> Result<&'a str, BundleError> {
        match self.value {
            Value::String(text) => Ok(text),
            Value::Null => Ok(""),
            _ => Err(self.error("must be a text")),
        }
    }

    pub(crate) fn texts(&self) -> Result<Vec<&'a str>, BundleError> {
        self.items()?.iter().map(Self::text).collect()
    }

    pub(crate) fn error(&self, problem: &str) -> BundleError {
        let text = format!("{}: {} {problem}", self.file, self.path.trim_start_matches('.'));
        BundleError::Field(model::text::line(&text, ERROR_CHARS))
    }
}
