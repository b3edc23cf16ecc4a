//! Documents of a bundle's files, and fields in them that know their place.

use std::collections::BTreeMap;
use std::io::{self, Read};

use fbc::{Chunks, FbcError, FbcLimits, Meta};
use oci::FileSink;
use olm::BundleFields;
use serde_json::Value;

/// Maximum size of a document, in bytes. etcd takes objects of 1.5 MiB; YAML is longer than JSON.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 4 << 20;
/// Maximum size of all documents as compact JSON, in bytes. The largest known bundles have 1 MB.
pub(crate) const FILES_BYTES_MAX: usize = 32 << 20;
/// Maximum depth of nested objects and lists. Real CRDs reach 60; the JSON parser, which recurses,
/// ends at 128.
const DEPTH_MAX: usize = 120;
/// Type of the properties that hold manifests in a catalog.
const OBJECT: &str = "olm.bundle.object";
/// Place of the other properties.
const CATALOG: &str = "the catalog";

/// Files of a bundle: a sink for those of an image or a folder.
#[derive(Debug, Default)]
pub struct BundleFiles {
    /// Paths of the folders with the manifests and with the metadata, in this order.
    pub folders: Vec<String>,
    /// Documents by the path of their file, such as `manifests/operator.yaml`.
    pub(crate) files: BTreeMap<String, Vec<BundleDocument>>,
    pub(crate) bytes: usize,
}

/// Bundle of a catalog.
#[derive(Debug)]
pub enum CatalogBundle {
    /// Files in the catalog (`olm.bundle.object`).
    Files(BundleFiles),
    /// Image with the files; empty if there is none.
    Image(String),
}

/// One document of a file.
#[derive(Debug, Clone)]
pub(crate) struct BundleDocument {
    /// File in the bundle, with the number of the document if it is not the first.
    pub(crate) file: String,
    /// Size as compact JSON, in bytes: about what etcd stores.
    pub(crate) bytes: usize,
    pub(crate) value: Value,
}

/// Value in a document. A missing one is null, as Kubernetes reads it.
#[derive(Debug, Clone)]
pub(crate) struct DocumentField<'a> {
    pub(crate) document: &'a BundleDocument,
    /// Path in the document, such as `.spec.versions[0].name`.
    path: String,
    pub(crate) value: &'a Value,
}

impl BundleFiles {
    /// Parses a file.
    pub(crate) fn add(&mut self, path: &str, content: impl Read) -> Result<(), BundleError> {
        let limits = FbcLimits {
            document_bytes: DOCUMENT_BYTES_MAX,
            depth: DEPTH_MAX,
            alias_bytes: DOCUMENT_BYTES_MAX,
            ..FbcLimits::default()
        };
        let mut documents = Vec::new();
        for chunk in Chunks::new(content, limits, DOCUMENT_BYTES_MAX) {
            let mut add = |meta: Meta<'_>| {
                let file = match meta.position.document {
                    1 => path.to_owned(),
                    number => format!("{path}, document {number}"),
                };
                // The line is canonical JSON within the depth, so it is never refused.
                let value = serde_json::from_slice(meta.line).unwrap_or_default();
                let bytes = meta.line.len();
                documents.push(BundleDocument { file, bytes, value });
                self.bytes += bytes;
            };
            let parsed = chunk.and_then(|chunk| chunk.metas(&limits, &mut add));
            parsed.map_err(|source| BundleError::Malformed(path.to_owned(), source))?;
            if self.bytes > FILES_BYTES_MAX {
                let problem =
                    format!("the files up to {path} exceed the limit of {FILES_BYTES_MAX} bytes");
                return Err(BundleError::refused(&problem));
            }
        }
        self.files.insert(path.to_owned(), documents);
        Ok(())
    }

    /// Returns the documents in the folder at this position. OLM does not read folders in it.
    pub(crate) fn documents(&self, folder: usize) -> Vec<DocumentField<'_>> {
        let files = self.files.iter().filter(|(path, _)| {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            self.folders
                .get(folder)
                .is_some_and(|folder| folder == parent)
        });
        let documents = files.flat_map(|(_, documents)| documents);
        documents.map(BundleDocument::root).collect()
    }
}

impl FileSink for BundleFiles {
    fn file(&mut self, path: &str, _: u64, content: &mut dyn Read) -> io::Result<()> {
        if is_manifest(path) {
            self.add(path, content).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        if let Some(documents) = self.files.get(target).cloned() {
            self.files.insert(path.to_owned(), documents);
        } else if is_manifest(path) {
            let problem = format!("{path} is a link to {target}, which is not read");
            return Err(io::Error::other(problem));
        }
        Ok(())
    }
}

/// Returns true for the name of a file that OLM reads.
fn is_manifest(path: &str) -> bool {
    [".yaml", ".yml", ".json"]
        .iter()
        .any(|end| path.ends_with(end))
}

impl CatalogBundle {
    /// Returns the bundle of a name or a version among the lines of a package.
    ///
    /// # Errors
    /// A line that OLM would refuse.
    pub fn find(lines: &[u8], wanted: &str) -> Result<Option<Self>, BundleError> {
        for line in lines.split(|byte| *byte == b'\n') {
            let bundle: BundleFields<'_> = serde_json::from_slice(line).unwrap_or_default();
            let is_wanted = bundle.name == wanted || bundle.version().as_deref() == Some(wanted);
            if bundle.schema == "olm.bundle" && is_wanted {
                return Self::read(line).map(Some);
            }
        }
        Ok(None)
    }

    fn read(line: &[u8]) -> Result<Self, BundleError> {
        let value = serde_json::from_slice(line);
        let document = BundleDocument {
            file: CATALOG.to_owned(),
            bytes: line.len(),
            value: value.map_err(|error| BundleError::refused(&format!("{CATALOG}: {error}")))?,
        };
        let mut files = BundleFiles::default();
        let properties = document.root().all("properties[]")?;
        let objects = properties
            .iter()
            .filter(|property| property.value["type"] == OBJECT);
        for (at, object) in objects.enumerate() {
            let data = object.at("value.data")?;
            let bytes = olm::decode_base64(data.text("")?);
            let bytes = bytes.map_err(|error| data.error(&format!("is no base64: {error}")))?;
            files.add(&format!("{OBJECT}/{at:04}"), bytes.as_slice())?;
        }
        if files.files.is_empty() {
            return Ok(Self::Image(document.root().text("image")?.to_owned()));
        }
        files.folders = [OBJECT, CATALOG].map(ToOwned::to_owned).into();
        files
            .files
            .insert(format!("{CATALOG}/properties"), vec![document]);
        Ok(Self::Files(files))
    }
}

impl BundleDocument {
    /// Returns the whole document.
    pub(crate) fn root(&self) -> DocumentField<'_> {
        DocumentField {
            document: self,
            path: String::new(),
            value: &self.value,
        }
    }
}

impl<'a> DocumentField<'a> {
    /// Returns the field at a path of keys, such as `spec.install`; the field itself if the path is
    /// empty.
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

    /// Returns the fields at a path with lists in it: `spec.versions[].name` is the name of each
    /// version.
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
            found.extend(
                Self {
                    path,
                    value,
                    ..*self
                }
                .all(rest)?,
            );
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
        let path = self.path.trim_start_matches('.');
        BundleError::refused(&format!("{}: {path} {problem}", self.document.file))
    }
}

/// Longest text of a problem, in characters.
const PROBLEM_CHARS: usize = 400;

/// The reason for which a bundle cannot be read. The caller names the bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file, by its path in the bundle, that is no YAML or JSON within the limits.
    #[error("{0}")]
    Malformed(String, #[source] FbcError),
    /// Content that Kubernetes or OLM refuses, or that this program cannot compare. Holds file,
    /// field and problem, cleaned for terminals.
    #[error("{0}")]
    Refused(String),
}

impl BundleError {
    /// Returns the error of a content that is refused.
    pub(crate) fn refused(problem: &str) -> Self {
        Self::Refused(model::text::line(problem, PROBLEM_CHARS))
    }
}
