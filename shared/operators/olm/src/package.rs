use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use model::Sha256;
use semver::Version;
use serde::{Deserialize, Serialize};

use crate::graph::{GraphEntry, GraphFault, chain, heads};
use crate::version::comparable_version;

/// Content of one Package. Several Metas with one schema and name, which OLM refuses, are merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// Channel that is used if none is named.
    pub default_channel: Option<String>,
    /// Channels of the Package by name.
    pub channels: BTreeMap<String, Channel>,
    /// Bundles of the Package by name.
    pub bundles: BTreeMap<String, Bundle>,
    /// Messages of the deprecations by their target.
    pub deprecations: BTreeMap<DeprecationTarget, String>,
    /// Documents about phases of support, as JSON: [`Lifecycle`](crate::Lifecycle) if they can be
    /// read.
    pub lifecycles: Vec<String>,
    /// Hash of each line with the schema `olm.package`.
    pub package_lines: Vec<Sha256>,
    /// Hash of each line with the schema `olm.deprecations`.
    pub deprecation_lines: Vec<Sha256>,
    /// Sorted hashes of all other lines, by schema.
    pub others: BTreeMap<String, Vec<Sha256>>,
    /// Lines that do not fit their schema. Their hashes are in `others` too.
    pub unreadable: Vec<UnreadableMeta>,
}

impl Package {
    /// Returns the message of a deprecation. The name is empty for the package.
    pub fn deprecation(&self, schema: &str, name: &str) -> Option<&str> {
        let target = DeprecationTarget {
            schema: schema.to_owned(),
            name: name.to_owned(),
        };
        self.deprecations.get(&target).map(String::as_str)
    }

    /// Returns the version of a bundle, as the catalog writes it.
    pub fn version_of(&self, bundle: &str) -> Option<&str> {
        self.bundles.get(bundle)?.version.as_deref()
    }
}

/// Names of the bundles of a package by their version.
#[derive(Debug)]
pub struct BundleVersions<'a> {
    /// By the version as the catalog writes it.
    written: HashMap<&'a str, &'a str>,
    /// By the version without build metadata.
    comparable: HashMap<Version, &'a str>,
}

impl<'a> BundleVersions<'a> {
    /// Reads the versions of a package. Of several bundles with one version the first name counts.
    pub fn new(package: &'a Package) -> Self {
        let mut versions = Self {
            written: HashMap::new(),
            comparable: HashMap::new(),
        };
        for (name, bundle) in &package.bundles {
            if let Some(version) = &bundle.version {
                versions.written.entry(version).or_insert(name);
                if let Some(version) = comparable_version(version) {
                    versions.comparable.entry(version).or_insert(name);
                }
            }
        }
        versions
    }

    /// Returns the name of the bundle with a version.
    // As it is written first: two versions may differ in build metadata alone.
    pub fn bundle_of(&self, version: &str) -> Option<&'a str> {
        if let Some(name) = self.written.get(version) {
            return Some(name);
        }
        self.comparable.get(&comparable_version(version)?).copied()
    }
}

/// Bundle of a package: an `olm.bundle`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    /// Version of the bundle, if it has one.
    pub version: Option<String>,
    /// Image of the bundle itself; empty if the catalog holds its content.
    pub image: String,
    /// Images that the operator runs. Most bundles list their own image too.
    pub related_images: Vec<RelatedImage>,
    /// APIs that it provides, as [`Gvk::text`](crate::Gvk::text).
    pub provides: Vec<String>,
    /// Requirements, as JSON of a [`Constraint`](crate::Constraint) each.
    pub requires: Vec<String>,
    /// Values of `olm.maxOpenShiftVersion`.
    pub max_openshift: Vec<String>,
    /// Hash of each line that describes the bundle: one, unless the catalog is broken.
    pub lines: Vec<Sha256>,
}

/// Element of `relatedImages` of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelatedImage {
    /// Name of the image in the bundle; often empty.
    pub name: String,
    /// Image reference as the bundle writes it.
    pub reference: String,
}

/// Target of a deprecation: a package, a channel or a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct DeprecationTarget {
    /// Schema of the target: `olm.package`, `olm.channel` or `olm.bundle`.
    pub schema: String,
    /// Name of the channel or bundle; empty for the package.
    pub name: String,
}

/// Line that does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableMeta {
    /// Value of `schema` in the line.
    pub schema: String,
    /// Value of `name` in the line.
    pub name: String,
    /// Error of the JSON parser, for people.
    pub reason: String,
}

/// Channel of a package: an `olm.channel`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Channel {
    /// Entries of the channel by bundle name.
    pub entries: BTreeMap<String, ChannelEntry>,
    /// Hash of each line that describes the channel: one, unless the catalog is broken.
    pub lines: Vec<Sha256>,
}

/// Entry of a channel: a bundle and the entries that it updates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelEntry {
    /// Name of the entry that it replaces.
    pub replaces: Option<String>,
    /// Names of entries that an update may skip.
    pub skips: BTreeSet<String>,
    /// Range of versions that an update may skip.
    pub skip_range: Option<String>,
}

impl ChannelEntry {
    /// Returns the names of the entries that it replaces or skips.
    pub fn updated(&self) -> impl Iterator<Item = &str> {
        self.replaces.iter().chain(&self.skips).map(String::as_str)
    }
}

impl Channel {
    /// Returns the entries that no entry replaces or skips, in byte order: one in a valid channel,
    /// none or several in a broken one.
    // The definition is that of operator-registry (`alpha/model`, `Channel.Head`), where more than
    // one is an error.
    pub fn heads(&self) -> Vec<&str> {
        heads(&self.graph_entries().collect::<Vec<_>>())
    }

    /// Returns the entries to which OLM v0 updates, in its order: from the head along `replaces`,
    /// without those that are skipped.
    ///
    /// # Errors
    /// A channel that OLM v0 refuses.
    // By `sortChannel` of operator-lifecycle-manager v0.38.0 (`pkg/controller/registry/resolver`).
    pub fn olm_v0_order(&self) -> Result<Vec<&str>, GraphFault<'_>> {
        let entries: Vec<GraphEntry<'_>> = self.graph_entries().collect();
        let skipped: HashSet<&str> = entries
            .iter()
            .flat_map(|entry| &entry.skips)
            .copied()
            .collect();
        let mut order = chain(&entries, |_| false)?;
        order.retain(|name| !skipped.contains(name));
        Ok(order)
    }

    /// Returns the entries as nodes of the upgrade graph, in byte order.
    pub fn graph_entries(&self) -> impl Iterator<Item = GraphEntry<'_>> {
        self.entries.iter().map(|(name, entry)| GraphEntry {
            name,
            replaces: entry.replaces.as_deref(),
            skips: entry.skips.iter().map(String::as_str).collect(),
        })
    }
}
