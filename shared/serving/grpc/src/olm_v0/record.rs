//! Records of the Packages of a state: all that the API answers about them without their lines. A
//! record depends on the lines of its Package only.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use model::Sha256;

/// Position of a line in the uncompressed Shard, in bytes. The newline is a part of it.
pub type LineRange = Range<u64>;

/// Record of one Package: what answers need without reading its Shard, and where its lines are.
#[derive(Debug, PartialEq, Eq)]
pub struct PackageRecord {
    /// Name of the Package; empty for the global group.
    pub name: String,
    /// Hash of the uncompressed lines of the Shard.
    pub lines: Sha256,
    /// Line of the `olm.package`. Without it the Shard has Metas of custom schemas only, and is no
    /// package for the API.
    pub package_line: Option<LineRange>,
    /// Name of the channel that is used if none is named.
    pub default_channel: String,
    /// Message of the deprecation of the whole Package.
    pub deprecation: Option<String>,
    /// Channels in the order of their names.
    pub channels: Vec<ChannelRecord>,
    /// Bundles in the order of their names.
    pub bundles: Vec<BundleRecord>,
    /// Lines of the Metas of each custom schema, in the order of the Shard.
    pub customs: BTreeMap<String, Vec<LineRange>>,
    /// Memory that it takes, in bytes.
    pub memory: usize,
}

/// Channel of a Package.
#[derive(Debug, PartialEq, Eq)]
pub struct ChannelRecord {
    /// Name of the channel.
    pub name: String,
    /// Message of the deprecation of the channel.
    pub deprecation: Option<String>,
    /// Entries in the order of the names of their bundles.
    pub entries: Vec<EntryRecord>,
    /// Position of the head in `entries`.
    pub head: usize,
}

/// Entry of a channel, and the bundles that it updates.
#[derive(Debug, PartialEq, Eq)]
pub struct EntryRecord {
    /// Position in [`PackageRecord::bundles`].
    pub bundle: usize,
    /// Name of the bundle that it replaces; empty for the first of a chain.
    pub replaces: String,
    /// Names of the bundles that it skips.
    pub skips: Vec<String>,
    /// Range of versions that it may update.
    pub skip_range: String,
}

/// Bundle of a Package.
#[derive(Debug, PartialEq, Eq)]
pub struct BundleRecord {
    /// Name of the bundle.
    pub name: String,
    /// Its version as the line has it.
    pub version: String,
    /// Position of its `olm.bundle`.
    pub line: LineRange,
    /// Reference of its image. Without one `ListBundles` sends its manifests.
    pub image: String,
    /// APIs that it provides and requires, as fields of its message. Encoded, because some bundles
    /// have thousands.
    pub apis: Vec<u8>,
    /// Its dependencies, and its properties except the large ones, as fields of its message.
    pub properties: Vec<u8>,
    /// Message of the deprecation of the bundle.
    pub deprecation: Option<String>,
}

impl BundleRecord {
    /// Returns the length of its texts and encoded fields, in bytes.
    pub fn texts(&self) -> usize {
        let texts = [&self.name, &self.version, &self.image];
        texts.iter().map(|text| text.len()).sum::<usize>() + self.apis.len() + self.properties.len()
    }
}

/// Records of all Packages of a state. Those of lines that an earlier state has too are shared with
/// its index.
#[derive(Debug, Default)]
pub struct ApiIndex {
    records: BTreeMap<String, Arc<PackageRecord>>,
    /// Memory that all records take, in bytes.
    pub memory: usize,
}

impl ApiIndex {
    /// Adds the record of a Package.
    pub fn insert(&mut self, record: Arc<PackageRecord>) {
        self.memory += record.memory;
        self.records.insert(record.name.clone(), record);
    }

    /// Returns the record with this name, which the global group and Packages without `olm.package`
    /// have too.
    pub fn record(&self, name: &str) -> Option<&Arc<PackageRecord>> {
        self.records.get(name)
    }

    /// Returns the records of Packages that have an `olm.package`, by name.
    pub fn packages(&self) -> impl Iterator<Item = &Arc<PackageRecord>> {
        let records = self.records.values();
        records.filter(|record| record.package_line.is_some())
    }
}
