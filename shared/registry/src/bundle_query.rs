use model::Sha256;
use prost::Message;

use crate::{
    BundleContent, LineRange, MessageParts, RegistryError,
    api::ApiBundle,
    record::{BundleRecord, EntryRecord, PackageRecord},
};

/// Numbers of fields of an [`ApiBundle`].
const CSV_JSON_TAG: u32 = 4;
const OBJECT_TAG: u32 = 5;

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

/// Key of the contents of a Package: the hash of the lines of its Shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentsKey(Sha256);

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

    /// Returns the key of the contents of the package.
    pub const fn contents_key(&self) -> ContentsKey {
        ContentsKey(self.lines)
    }

    /// Returns the error of a bundle without content.
    pub(crate) fn failed(&self, reason: &str) -> RegistryError {
        RegistryError::Bundle {
            bundle: self.message.csv_name.clone(),
            reason: reason.to_owned(),
        }
    }

    /// Returns about the memory that the answer takes, in bytes. It shares the icon with others.
    pub const fn answer_memory(&self) -> u64 {
        // Manifests that come from a list of properties can be longer than their line.
        self.bundle_line.length.saturating_mul(2)
    }

    /// Returns the answer with the manifests that [`PackageContents`](crate::PackageContents) has.
    pub fn with_content(self, content: &BundleContent) -> MessageParts {
        let mut rest = self.message;
        let [csv_name, package_name, channel_name] =
            [&mut rest.csv_name, &mut rest.package_name, &mut rest.channel_name].map(std::mem::take);
        // In the order of the fields, as Go encodes them.
        let mut answer = MessageParts::of(&ApiBundle {
            csv_name,
            package_name,
            channel_name,
            ..ApiBundle::default()
        });
        if !content.csv_json.is_empty() {
            answer.push_text(CSV_JSON_TAG, &content.csv_json);
        }
        for object in &content.objects {
            answer.push_text(OBJECT_TAG, object);
        }
        answer.push(&rest);
        answer
    }
}
