use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use oci::FileSink;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{BundleError, manifest::BundleManifest};

/// Maximum size of a file, in bytes. etcd takes objects of 1.5 MiB; YAML is longer than JSON.
pub const FILE_BYTES_MAX: usize = 4 << 20;
/// Maximum size of all files of a folder, in bytes. The largest known bundles have 1 MB.
pub const FOLDER_BYTES_MAX: usize = 16 << 20;

/// Files of one of the two folders of a bundle, `manifests` and `metadata`: a sink for the files of an image.
#[derive(Debug)]
pub struct BundleFolder {
    name: &'static str,
    /// Contents by the path in the bundle, such as `manifests/operator.yaml`.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    bytes: usize,
}

/// Bundle of a catalog.
#[derive(Debug)]
pub struct CatalogBundle {
    /// Image with the files; empty if there is none.
    pub image: String,
    /// Manifests and metadata, if the catalog has them (`olm.bundle.object`).
    pub files: Option<[BundleFolder; 2]>,
}

#[derive(Deserialize)]
struct BundleLine {
    #[serde(default)]
    schema: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    image: String,
    #[serde(default)]
    properties: Vec<Value>,
}

impl BundleFolder {
    /// Creates an empty folder.
    pub fn new(name: &'static str) -> Self {
        let (files, bytes) = (BTreeMap::new(), 0);
        Self { name, files, bytes }
    }

    fn add(&mut self, file: &str, bytes: Vec<u8>) -> Result<(), BundleError> {
        let file = format!("{}/{file}", self.name);
        if bytes.len() > FILE_BYTES_MAX {
            return Err(BundleError::Size(file, FILE_BYTES_MAX));
        }
        self.bytes += bytes.len();
        if self.bytes > FOLDER_BYTES_MAX {
            return Err(BundleError::Size(self.name.to_owned(), FOLDER_BYTES_MAX));
        }
        self.files.insert(file, bytes);
        Ok(())
    }
}

impl FileSink for BundleFolder {
    fn file(&mut self, path: &str, _: u64, content: &mut dyn Read) -> io::Result<()> {
        // OLM reads neither folders in the folder nor other files.
        if path.contains('/') || ![".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end)) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        content.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        self.add(path, bytes).map_err(io::Error::other)
    }

    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        match self.files.get(&format!("{}/{target}", self.name)).cloned() {
            Some(bytes) => self.file(path, bytes.len() as u64, &mut bytes.as_slice()),
            None => Ok(()),
        }
    }
}

impl CatalogBundle {
    /// Returns the bundle of a name or a version among the lines of a package.
    ///
    /// # Errors
    /// A line that OLM would refuse.
    pub fn find(lines: &[u8], wanted: &str) -> Result<Option<Self>, BundleError> {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line: BundleLine = serde_json::from_slice(line).map_err(BundleError::Line)?;
            let has_version =
                |property: &Value| property["type"] == "olm.package" && property["value"]["version"] == wanted;
            if line.schema == "olm.bundle" && (line.name == wanted || line.properties.iter().any(has_version)) {
                return Self::read(line).map(Some);
            }
        }
        Ok(None)
    }

    fn read(BundleLine { image, properties, .. }: BundleLine) -> Result<Self, BundleError> {
        let is_object = |property: &Value| property["type"] == "olm.bundle.object";
        let (objects, others): (Vec<Value>, Vec<Value>) = properties.into_iter().partition(is_object);
        let objects = BundleManifest {
            file: "the catalog".to_owned(),
            bytes: 0,
            value: json!({ "objects": objects }),
        };
        let mut manifests = BundleFolder::new("olm.bundle.object");
        for (at, data) in objects.root().all("objects[].value.data")?.iter().enumerate() {
            let bytes = olm::decode_base64(data.text("")?);
            let bytes = bytes.map_err(|error| data.error(&format!("is no base64: {error}")))?;
            manifests.add(&format!("{at:04}"), bytes)?;
        }
        let mut metadata = BundleFolder::new("the catalog");
        metadata.add("properties", json!({ "properties": others }).to_string().into_bytes())?;
        let files = (!manifests.files.is_empty()).then_some([manifests, metadata]);
        Ok(Self { image, files })
    }
}
