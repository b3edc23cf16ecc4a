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

/// Answer with one bundle, which lacks what only the lines of the Shard have: `csvJson` and `object`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleQuery {
    /// Name of the package, which is that of the Shard.
    pub package: String,
    /// Line of the bundle.
    pub bundle_line: LineRange,
    /// Line of the `olm.package`.
    pub package_line: LineRange,
    pub(crate) message: ApiBundle,
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
        let mut message = self.message;
        match Content::read(&message, bundle_line, package_line) {
            Ok(content) => {
                message.csv_json = content.csv_json;
                message.object = content.object;
                Ok(message)
            }
            Err(reason) => Err(RegistryError::Bundle {
                bundle: message.csv_name,
                reason,
            }),
        }
    }
}

/// Manifests of a bundle.
struct Content {
    csv_json: String,
    object: Vec<String>,
}

impl Content {
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
            if object.is_empty() {
                object.push(csv_json.clone());
            }
        }
        Ok(Self { csv_json, object })
    }
}

fn text(line: &[u8]) -> Result<&str, Wrong> {
    std::str::from_utf8(line).map_err(|error| error.to_string())
}
