//! Documents of a bundle's files, and fields in them that know their place.

use std::collections::BTreeMap;

use fbc::{Chunks, FbcLimits};
use serde_json::Value;

use crate::{BundleError, FILE_BYTES_MAX};

/// Maximum depth of nested objects and lists. Real CRDs reach 60; the JSON parser, which recurses, ends at 128.
const DEPTH_MAX: usize = 120;

/// One document of a file.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// File in the bundle, with the number of the document if it is not the first.
    pub(crate) file: String,
    /// Size as compact JSON, in bytes: about what etcd stores.
    pub(crate) bytes: usize,
    pub(crate) value: Value,
}

/// Value in a document. A missing one is null, as Kubernetes reads it.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a> {
    file: &'a str,
    /// Path in the document, such as `spec.versions[0].name`.
    path: String,
    pub(crate) value: &'a Value,
}

/// Parses all documents of the files.
pub(crate) fn parse(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<Manifest>, BundleError> {
    let limits = FbcLimits {
        document_bytes: FILE_BYTES_MAX,
        depth: DEPTH_MAX,
        alias_bytes: FILE_BYTES_MAX,
        ..FbcLimits::default()
    };
    let mut manifests = Vec::new();
    for (file, bytes) in files {
        let mut lines = Vec::new();
        let failed = |source| BundleError::Malformed {
            file: file.clone(),
            source,
        };
        for chunk in Chunks::new(bytes.as_slice(), limits, FILE_BYTES_MAX) {
            let each = &mut |meta: fbc::Meta<'_>| lines.push((meta.position.document, meta.line.to_vec()));
            chunk.and_then(|chunk| chunk.metas(&limits, each)).map_err(failed)?;
        }
        for (document, line) in lines {
            let place = if document > 1 {
                format!("{file}, document {document}")
            } else {
                file.clone()
            };
            let value = serde_json::from_slice(&line);
            let value = value.map_err(|error| BundleError::field(&place, "", &error.to_string()))?;
            manifests.push(Manifest {
                file: place,
                bytes: line.len(),
                value,
            });
        }
    }
    Ok(manifests)
}

impl Manifest {
    pub(crate) fn root(&self) -> Field<'_> {
        Field {
            file: &self.file,
            path: String::new(),
            value: &self.value,
        }
    }

    /// Returns the kind, and the empty text if it has none.
    pub(crate) fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    /// Returns the API group: the version without its last part.
    pub(crate) fn group(&self) -> &str {
        let version = self.value["apiVersion"].as_str().unwrap_or_default();
        version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    pub(crate) fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }
}

impl<'a> Field<'a> {
    /// Returns the field at a path of keys, such as `spec.install`.
    pub(crate) fn at(&self, keys: &str) -> Result<Self, BundleError> {
        let mut field = self.clone();
        for key in keys.split('.') {
            field = field.child(key)?;
        }
        Ok(field)
    }

    pub(crate) fn child(&self, key: &str) -> Result<Self, BundleError> {
        let value = match self.value {
            Value::Object(fields) => fields.get(key).unwrap_or(&Value::Null),
            Value::Null => &Value::Null,
            _ => return Err(self.error("must be an object")),
        };
        let dot = if self.path.is_empty() { "" } else { "." };
        Ok(Self {
            path: format!("{}{dot}{key}", self.path),
            value,
            ..*self
        })
    }

    pub(crate) fn items(&self) -> Result<Vec<Self>, BundleError> {
        let items = match self.value {
            Value::Array(items) => items.as_slice(),
            Value::Null => &[],
            _ => return Err(self.error("must be a list")),
        };
        let item = |(at, value)| Self {
            path: format!("{}[{at}]", self.path),
            value,
            ..*self
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    pub(crate) fn text(&self) -> Result<&'a str, BundleError> {
        match self.value {
            Value::String(text) => Ok(text),
            Value::Null => Ok(""),
            _ => Err(self.error("must be a text")),
        }
    }

    pub(crate) fn flag(&self) -> Result<bool, BundleError> {
        match self.value {
            Value::Bool(flag) => Ok(*flag),
            Value::Null => Ok(false),
            _ => Err(self.error("must be true or false")),
        }
    }

    pub(crate) fn texts(&self) -> Result<Vec<&'a str>, BundleError> {
        self.items()?.iter().map(Self::text).collect()
    }

    pub(crate) fn error(&self, problem: &str) -> BundleError {
        BundleError::field(self.file, &self.path, problem)
    }
}
