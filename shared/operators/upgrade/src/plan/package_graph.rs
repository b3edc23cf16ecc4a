//! The upgrade graph of a package as a document for programs.

use std::collections::{BTreeSet, HashSet};

use olm::{Channel, Package};
use serde::Serialize;

/// Upgrade graph of a package, as its channels write it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageGraph<'a> {
    /// 1. A change of the fields that are here increases it.
    pub format_version: u32,
    /// Name of the package.
    pub package: &'a str,
    /// Channels in the order of their names.
    pub channels: Vec<ChannelEntries<'a>>,
}

/// Channel with its marks and its entries.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelEntries<'a> {
    /// Name of the channel.
    pub name: &'a str,
    /// True for the default channel of the package.
    pub is_default: bool,
    /// True if the channel is deprecated.
    pub is_deprecated: bool,
    /// Entries in the order of the names of their bundles.
    pub entries: Vec<EntryGraph<'a>>,
}

/// Entry of a channel, and the bundles that it updates.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryGraph<'a> {
    /// Name of the bundle.
    pub bundle: &'a str,
    /// Version of the bundle, if the catalog has it.
    pub version: Option<&'a str>,
    /// True if no entry replaces or skips it.
    pub is_head: bool,
    /// True if the bundle is deprecated.
    pub is_deprecated: bool,
    /// Bundle that it replaces; `None` for the first of a chain.
    pub replaces: Option<&'a str>,
    /// Bundles that it updates too, and that are passed over on the way to it.
    pub skips: &'a BTreeSet<String>,
    /// Range of versions that it skips.
    pub skip_range: Option<&'a str>,
}

impl<'a> PackageGraph<'a> {
    /// Reads the graph of a package.
    pub fn new(name: &'a str, package: &'a Package) -> Self {
        let channels = package.channels.iter();
        let channels = channels.map(|(name, channel)| ChannelEntries::new(name, channel, package));
        Self {
            format_version: 1,
            package: name,
            channels: channels.collect(),
        }
    }
}

impl<'a> ChannelEntries<'a> {
    fn new(name: &'a str, channel: &'a Channel, package: &'a Package) -> Self {
        let heads: HashSet<&str> = channel.heads().into_iter().collect();
        let entries = channel.entries.iter().map(|(bundle, entry)| EntryGraph {
            bundle,
            version: package.version_of(bundle),
            is_head: heads.contains(bundle.as_str()),
            is_deprecated: package.deprecation("olm.bundle", bundle).is_some(),
            replaces: entry.replaces.as_deref(),
            skips: &entry.skips,
            skip_range: entry.skip_range.as_deref(),
        });
        Self {
            name,
            is_default: package.default_channel.as_deref() == Some(name),
            is_deprecated: package.deprecation("olm.channel", name).is_some(),
            entries: entries.collect(),
        }
    }
}
