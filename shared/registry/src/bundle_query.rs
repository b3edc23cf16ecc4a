use std::io;

use model::{Sha256, decode_zstd, encode_zstd};
use prost::Message;
use serde_json::value::RawValue;

use crate::{
    LineRange, RegistryError,
    api::ApiBundle,
    csv::CsvSource,
    go::{self, Wrong},
    objects::{ObjectReader, is_csv},
    record::{BundleRecord, EntryRecord, PackageRecord},
};

/// Compression level of contents in memory: a client waits for the first one.
const CONTENT_LEVEL: i32 = 1;

/// Maximum size of a content, in bytes: lines of bundles are shorter.
const CONTENT_BYTES_MAX: u64 = 1 << 30;

/// Answer with one bundle, which lacks what only the lines of the Shard have: `csvJson` and `object`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleQuery {
    /// Name of the package, which is that of the Shard.
    pub package: String,
    /// The sha256 of all lines of the Shard.
    pub(crate) lines: Sha256,
    /// Line of the bundle.
    pub bundle_line: LineRange,
    /// Line of the `olm.package`.
    pub package_line: LineRange,
    pub(crate) message: ApiBundle,
}

/// Key of the content of a bundle: the lines of its Shard, and the offset of its own line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BundleKey {
    lines: Sha256,
    offset: u64,
}

/// Bundle of `ListBundles`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedBundle {
    /// The bundle has an image, so its content is not sent.
    Complete(ApiBundle),
    /// The bundle has no image, so its content is sent.
    Incomplete(BundleQuery),
}

impl BundleQuery {
    /// Reads the record of a bundle as it is in one channel.
    pub(crate) fn new(
        package: &PackageRecord,
        channel: &str,
        entry: &EntryRecord,
        bundle: BundleRecord,
    ) -> Result<Self, RegistryError> {
        let line = bundle.line.ok_or(RegistryError::Damaged("a bundle has no line"))?;
        let mut message = ApiBundle::decode(bundle.message)?;
        channel.clone_into(&mut message.channel_name);
        message.skip_range.clone_from(&entry.skip_range);
        Ok(Self {
            package: package.name.clone(),
            lines: package.lines()?,
            bundle_line: line,
            package_line: package.package_line.unwrap_or_default(),
            message,
        })
    }

    /// Returns the answer. The lines may end with a newline.
    ///
    /// # Errors
    /// Fails if the lines are not those of the record.
    pub fn complete(self, bundle_line: &[u8], package_line: &[u8]) -> Result<ApiBundle, RegistryError> {
        let content = self.content(bundle_line, package_line)?;
        Ok(self.with_content(content))
    }

    /// Returns the key of what [`Self::content`] returns.
    pub const fn key(&self) -> BundleKey {
        BundleKey {
            lines: self.lines,
            offset: self.bundle_line.offset,
        }
    }

    /// Returns the manifests of the bundle.
    ///
    /// # Errors
    /// As [`Self::complete`].
    pub fn content(&self, bundle_line: &[u8], package_line: &[u8]) -> Result<BundleContent, RegistryError> {
        BundleContent::read(&self.message, bundle_line, package_line).map_err(|reason| RegistryError::Bundle {
            bundle: self.message.csv_name.clone(),
            reason,
        })
    }

    /// Returns the answer with the manifests that [`Self::content`] made.
    pub fn with_content(self, content: BundleContent) -> ApiBundle {
        let BundleContent {
            csv_json,
            mut object,
            is_made,
        } = content;
        if is_made && object.is_empty() {
            object.push(csv_json.clone());
        }
        ApiBundle {
            csv_json,
            object,
            ..self.message
        }
    }
}

/// Manifests of a bundle. They depend on the lines of its Shard only.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BundleContent {
    #[prost(string, tag = "1")]
    csv_json: String,
    #[prost(string, repeated, tag = "2")]
    object: Vec<String>,
    /// True if `csv_json` was made of `olm.csv.metadata`. Without other objects it is then the only one.
    #[prost(bool, tag = "3")]
    is_made: bool,
}

impl BundleContent {
    /// Returns the content compressed, for a cache in memory.
    ///
    /// # Errors
    /// Fails if the compressor cannot allocate its memory.
    pub fn to_compressed(&self) -> io::Result<Vec<u8>> {
        encode_zstd(&self.encode_to_vec(), CONTENT_LEVEL)
    }

    /// Reads what [`Self::to_compressed`] returned.
    ///
    /// # Errors
    /// Fails if the bytes are damaged.
    pub fn from_compressed(bytes: &[u8]) -> Result<Self, RegistryError> {
        let damaged = |_| RegistryError::Damaged("the content of a bundle cannot be decompressed");
        let decoded = decode_zstd(bytes, CONTENT_BYTES_MAX).map_err(damaged)?;
        Ok(Self::decode(decoded.as_slice())?)
    }

    fn read(bundle: &ApiBundle, bundle_line: &[u8], package_line: &[u8]) -> Result<Self, Wrong> {
        let line = text(bundle_line)?;
        let fields = go::fields(line, &["properties", "relatedImages"])?;
        let [properties, related_images] = [0, 1].map(|at| fields.get(at).copied().flatten());
        let mut object = Vec::new();
        let mut reader = ObjectReader::default();
        let mut metadata = Vec::new();
        go::elements(properties.map_or("null", RawValue::get), |property| {
            let property = go::fields(property.get(), &["type", "value"])?;
            let [kind, value] = [0, 1].map(|at| property.get(at).copied().flatten());
            let value = value.map_or("null", RawValue::get);
            match &*go::text(kind)? {
                "olm.bundle.object" => object.push(reader.read(value)?),
                "olm.csv.metadata" => metadata.push(value),
                _ => {}
            }
            Ok(())
        })?;
        let mut is_made = false;
        let mut csv_json = object.iter().find(|object| is_csv(object)).cloned().unwrap_or_default();
        if let ([metadata], true) = (metadata.as_slice(), csv_json.is_empty()) {
            let source = CsvSource {
                name: &bundle.csv_name,
                version: &bundle.version,
                metadata,
                related_images,
                package: text(package_line)?,
            };
            csv_json = source.json()?;
            is_made = true;
        }
        Ok(Self {
            csv_json,
            object,
            is_made,
        })
    }
}

fn text(line: &[u8]) -> Result<&str, Wrong> {
    std::str::from_utf8(line).map_err(|error| error.to_string())
}
