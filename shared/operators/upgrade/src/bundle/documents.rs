//! Documents of a bundle's files, and fields in them that know their place.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::ops::Range;

use fbc::{Chunks, FbcError, FbcLimits, Meta};
use oci::FileSink;
use olm::BundleFields;
use serde_json::Value;
use work::OverBudget;

use crate::Exceeded;

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

/// Bundles of a package of a catalog.
#[derive(Debug)]
pub struct CatalogBundles {
    lines: Vec<u8>,
    /// Places of bundles in the lines.
    places: Vec<Range<usize>>,
    /// Numbers of the first bundles with a name or a version.
    named: HashMap<String, usize>,
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
            let parsed = chunk.and_then(|chunk| {
                chunk.metas(&limits, &mut |meta: Meta<'_>| {
                    documents.push(BundleDocument {
                        file: match meta.position.document {
                            1 => path.to_owned(),
                            number => format!("{path}, document {number}"),
                        },
                        bytes: meta.line.len(),
                        // The line is canonical JSON within the depth, so it is never refused.
                        value: serde_json::from_slice(meta.line).unwrap_or_default(),
                    });
                    self.bytes += meta.line.len();
                })
            });
            parsed.map_err(|source| BundleError::Malformed(path.to_owned(), source))?;
            self.check_bytes(path)?;
        }
        self.files.insert(path.to_owned(), documents);
        Ok(())
    }

    fn check_bytes(&self, path: &str) -> Result<(), BundleError> {
        if self.bytes > FILES_BYTES_MAX {
            let problem =
                format!("the files up to {path} exceed the limit of {FILES_BYTES_MAX} bytes");
            return Err(BundleError::refused(&problem));
        }
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
        let Some(documents) = self.files.get(target) else {
            if is_manifest(path) {
                let problem = format!("{path} is a link to {target}, which is not read");
                return Err(io::Error::other(problem));
            }
            return Ok(());
        };
        // Many links may lead to one large file.
        let bytes = documents.iter().map(|document| document.bytes);
        self.bytes += bytes.sum::<usize>();
        self.check_bytes(path).map_err(io::Error::other)?;
        let documents = self.files[target].clone();
        self.files.insert(path.to_owned(), documents);
        Ok(())
    }
}

/// Returns true for the name of a file that OLM reads.
fn is_manifest(path: &str) -> bool {
    [".yaml", ".yml", ".json"]
        .iter()
        .any(|end| path.ends_with(end))
}

impl CatalogBundles {
    /// Reads the names and versions of the bundles among the lines of a package.
    pub fn new(lines: Vec<u8>) -> Self {
        let mut places = Vec::new();
        let mut named = HashMap::new();
        let mut start = 0;
        for line in lines.split(|byte| *byte == b'\n') {
            let place = start..start + line.len();
            start = place.end + 1;
            let fields: BundleFields<'_> = serde_json::from_slice(line).unwrap_or_default();
            if fields.schema != "olm.bundle" {
                continue;
            }
            let names = [Some(fields.name.to_string()), fields.version()];
            for name in names.into_iter().flatten() {
                named.entry(name).or_insert(places.len());
            }
            places.push(place);
        }
        Self {
            lines,
            places,
            named,
        }
    }

    /// Returns true if a bundle has this name or version.
    pub fn has(&self, wanted: &str) -> bool {
        self.named.contains_key(wanted)
    }

    /// Returns the names and versions of all bundles, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Returns the first bundle with this name or version.
    ///
    /// # Errors
    /// A line that OLM would refuse.
    pub fn find(&self, wanted: &str) -> Result<Option<CatalogBundle>, BundleError> {
        let Some(number) = self.named.get(wanted) else {
            return Ok(None);
        };
        let line = &self.lines[self.places[*number].clone()];
        CatalogBundle::read(line).map(Some)
    }
}

impl CatalogBundle {
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
            match olm::decode_base64(data.text("")?) {
                Ok(bytes) => files.add(&format!("{OBJECT}/{at:04}"), bytes.as_slice())?,
                Err(error) => return Err(data.error(&format!("is no base64: {error}"))),
            }
        }
        if files.files.is_empty() {
            return Ok(Self::Image(document.root().text("image")?.to_owned()));
        }
        files.folders = vec![OBJECT.to_owned(), CATALOG.to_owned()];
        let properties = format!("{CATALOG}/properties");
        files.files.insert(properties, vec![document]);
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
            field.path = format!("{}.{key}", field.path);
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
            let item = Self {
                document: self.document,
                path: format!("{}[{at}]", list.path),
                value,
            };
            found.extend(item.all(rest)?);
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
    /// Work that takes too many steps, or an answer that is too large.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

impl From<OverBudget> for BundleError {
    fn from(over: OverBudget) -> Self {
        Self::Exceeded(over.into())
    }
}

impl BundleError {
    /// Returns the error of a content that is refused.
    pub(crate) fn refused(problem: &str) -> Self {
        Self::Refused(model::text::line(problem, PROBLEM_CHARS))
    }
}
