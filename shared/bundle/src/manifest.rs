//! Documents of a bundle's files, and fields in them that know their place.

use fbc::{Chunks, FbcLimits, Meta};
use serde_json::Value;

use crate::{BundleError, BundleFolder, FILE_BYTES_MAX};

/// Maximum depth of nested objects and lists. Real CRDs reach 60; the JSON parser, which recurses, ends at 128.
const DEPTH_MAX: usize = 120;

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
    pub(crate) document: &'a BundleManifest,
    /// Path in the document, such as `.spec.versions[0].name`.
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
            parsed.map_err(|source| BundleError::Malformed(name.clone(), source))?;
        }
    }
    Ok(manifests)
}

impl BundleManifest {
    /// Returns the whole document.
    pub(crate) fn root(&self) -> ManifestField<'_> {
        let (path, value) = (String::new(), &self.value);
        ManifestField {
            document: self,
            path,
            value,
        }
    }
}

impl<'a> ManifestField<'a> {
    /// Returns the field at a path of keys, such as `spec.install`; the field itself if the path is empty.
    pub(crate) fn at(&self, path: &str) -> Result<Self, BundleError> {
        let mut field = self.clone();
        for key in path.split('.').filter(|key| !key.is_empty()) {
            field.value = match field.value {
                Value::Object(fields) => fields.get(key).unwrap_or(&Value::Null),
                Value::Null => &Value::Null,
                _ => return Err(field.error("must be an object")),
            };
            field.path = [&field.path, key].map(ToOwned::to_owned).join(".");
        }
        Ok(field)
    }

    /// Returns the fields at a path with lists in it: `spec.versions[].name` is the name of each version.
    pub(crate) fn all(&self, path: &str) -> Result<Vec<Self>, BundleError> {
        let Some((list, rest)) = path.split_once("[]") else {
            return Ok(vec![self.at(path)?]);
        };
        let list = self.at(list)?;
        let items = match list.value {
            Value::Array(items) => items.as_slice(),
            Value::Null => &[],
            _ => return Err(list.error("must be a list")),
        };
        let mut found = Vec::new();
        for (at, value) in items.iter().enumerate() {
            let path = format!("{}[{at}]", list.path);
            found.extend(Self { path, value, ..*self }.all(rest)?);
        }
        Ok(found)
    }

    /// Returns the text at a path; empty if there is none.
    pub(crate) fn text(&self, path: &str) -> Result<&'a str, BundleError> {
        let field = self.at(path)?;
        match field.value {
            Value::String(text) => Ok(text),
            Value::Null => Ok(""),
            _ => Err(field.error("must be a text")),
        }
    }

    /// Returns the texts at a path with lists in it.
    pub(crate) fn texts(&self, path: &str) -> Result<Vec<&'a str>, BundleError> {
        self.all(path)?.iter().map(|field| field.text("")).collect()
    }

    /// Returns a sentence with values in place of the paths in braces, the last of which ends it.
    pub(crate) fn sentence(&self, pattern: &str) -> Result<String, BundleError> {
        let mut sentence = String::new();
        for (words, path) in pattern.split('}').filter_map(|part| part.split_once('{')) {
            sentence += words;
            match self.at(path)?.value {
                Value::Null => {}
                Value::String(text) => sentence += text,
                value => sentence += &value.to_string(),
            }
        }
        Ok(sentence)
    }

    pub(crate) fn error(&self, problem: &str) -> BundleError {
        let text = format!(
            "{}: {} {problem}",
            self.document.file,
            self.path.trim_start_matches('.')
        );
        BundleError::refused(&text)
    }
}
