use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use oci::FileSink;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{BundleError, manifest::Manifest};

/// Maximum size of a file, in bytes. etcd takes objects of 1.5 MiB; YAML is longer than JSON.
pub const FILE_BYTES_MAX: usize = 4 << 20;
/// Maximum size of all files of a bundle, in bytes. The largest known bundles have 1 MB.
pub const BUNDLE_BYTES_MAX: usize = 16 << 20;

/// Files of a bundle by their path, such as `manifests/operator.yaml`.
#[derive(Debug, Default)]
pub struct BundleFiles {
    pub(crate) manifests: BTreeMap<String, Vec<u8>>,
    pub(crate) metadata: BTreeMap<String, Vec<u8>>,
}

/// Files of one folder of a bundle: a sink for the files of an image.
#[derive(Debug)]
pub struct BundleFolder {
    /// Name of the folder, for errors.
    name: &'static str,
    files: BTreeMap<String, Vec<u8>>,
    bytes: usize,
}

/// Bundle of a catalog.
#[derive(Debug)]
pub struct CatalogBundle {
    /// Name of the bundle.
    pub name: String,
    /// Image with the files; empty if there is none.
    pub image: String,
    /// Files, if the catalog has them (`olm.bundle.object`).
    pub files: Option<BundleFiles>,
}

#[derive(Deserialize)]
struct BundleLine {
    #[serde(default)]
    name: String,
    #[serde(default)]
    image: String,
    #[serde(default)]
    properties: Vec<Value>,
}

impl BundleFiles {
    /// Creates the files of the two folders of an image.
    pub fn new(manifests: BundleFolder, metadata: BundleFolder) -> Self {
        Self {
            manifests: manifests.files,
            metadata: metadata.files,
        }
    }
}

impl BundleFolder {
    /// Creates an empty folder.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            files: BTreeMap::new(),
            bytes: 0,
        }
    }

    fn add(&mut self, file: &str, bytes: Vec<u8>) -> Result<(), BundleError> {
        let exceeded = |place, limit| Err(BundleError::Size { place, limit });
        let file = format!("{}/{}", self.name, model::text::line(file, 200));
        if bytes.len() > FILE_BYTES_MAX {
            return exceeded(file, FILE_BYTES_MAX);
        }
        self.bytes += bytes.len();
        if self.bytes > BUNDLE_BYTES_MAX {
            return exceeded(self.name.to_owned(), BUNDLE_BYTES_MAX);
        }
        self.files.insert(file, bytes);
        Ok(())
    }
}

/// OLM reads only the files of the folder itself, not those of folders in it, and takes only YAML and JSON for manifests.
fn is_manifest(path: &str) -> bool {
    !path.contains('/') && [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end))
}

impl FileSink for BundleFolder {
    fn file(&mut self, path: &str, _: u64, content: &mut dyn Read) -> io::Result<()> {
        if !is_manifest(path) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        content.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        self.add(path, bytes).map_err(io::Error::other)
    }

    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        let target = self.files.get(&format!("{}/{target}", self.name)).cloned();
        match target {
            Some(bytes) if is_manifest(path) => self.add(path, bytes).map_err(io::Error::other),
            _ => Ok(()),
        }
    }
}

impl CatalogBundle {
    /// Reads the line of a bundle in a catalog.
    ///
    /// # Errors
    /// A line that OLM would refuse.
    pub fn of_line(line: &[u8]) -> Result<Self, BundleError> {
        let bundle: BundleLine = serde_json::from_slice(line).map_err(BundleError::Line)?;
        let properties = Manifest {
            file: "the catalog".to_owned(),
            bytes: line.len(),
            value: json!({ "properties": &bundle.properties }),
        };
        let mut manifests = BundleFolder::new("olm.bundle.object");
        for property in properties.root().child("properties")?.items()? {
            if property.child("type")?.text()? == "olm.bundle.object" {
                let data = property.at("value.data")?;
                let bytes = olm::decode_base64(data.text()?);
                let bytes = bytes.map_err(|error| data.error(&format!("is no base64: {error}")))?;
                manifests.add(&format!("{:04}", manifests.files.len() + 1), bytes)?;
            }
        }
        let is_other = |property: &&Value| property["type"] != "olm.bundle.object";
        let others: Vec<&Value> = bundle.properties.iter().filter(is_other).collect();
        let mut metadata = BundleFolder::new("the catalog");
        metadata.add("properties", json!({ "properties": others }).to_string().into_bytes())?;
        Ok(Self {
            name: bundle.name,
            image: bundle.image,
            files: (!manifests.files.is_empty()).then(|| BundleFiles::new(manifests, metadata)),
        })
    }
}
