use model::Sha256;
use serde::{Deserialize, Serialize};

use crate::DeprecationTarget;

/// Version of the document's format. It grows when an older reader would misunderstand a newer
/// document.
pub const CHANGES_VERSION: u32 = 1;

/// Differences between two Snapshots: a function of their content hashes. All lists are in byte
/// order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// Version of this document's format: 1.
    pub format_version: u32,
    /// Content hash of the older state.
    pub from: Sha256,
    /// Content hash of the newer state.
    pub to: Sha256,
    /// True if every package is described in full. If false, the packages with `omitted` were too
    /// large to compare in one request: they differ, but the document does not say in what.
    pub complete: bool,
    /// Packages that were added, removed or changed.
    pub packages: Differences<PackageSummary, PackageChange>,
    /// Changes of the metas that belong to no package; null if there are none.
    pub global: Option<PackageChange>,
}

/// Values that differ between the two states, such as the channels of a package. `Summary`
/// describes a value that only one state has, `Change` one that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differences<Summary, Change> {
    /// Values that only the newer state has.
    pub added: Vec<Summary>,
    /// Values that only the older state has.
    pub removed: Vec<Summary>,
    /// Values that both states have, with different content.
    pub changed: Vec<Change>,
}

/// Content of a package that was added or removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageSummary {
    /// Name of the package.
    pub name: String,
    /// True if only the name is given, because the package is too large to compare.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
    /// Default channel of the package.
    pub default_channel: Option<String>,
    /// Channels of the package and their heads.
    pub channels: Vec<ChannelSummary>,
    /// Bundles of the package with version and image.
    pub bundles: Vec<BundleSummary>,
    /// Deprecations of the package, its channels and its bundles.
    pub deprecations: Vec<Deprecation<String>>,
}

/// Changes of a package that both states have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageChange {
    /// Name of the package; empty for the metas that belong to no package.
    pub name: String,
    /// True if only the name is given, because the package is too large to compare.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
    /// True if the `olm.package` itself differs: its default channel, icon or description.
    pub package: bool,
    /// Default channel in both states, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<TextChange>,
    /// Channels of the package that differ.
    pub channels: Differences<ChannelSummary, ChannelChange>,
    /// Bundles of the package that differ.
    pub bundles: Differences<BundleSummary, BundleChange>,
    /// Deprecations of the package that differ.
    pub deprecations: Differences<Deprecation<String>, Deprecation<TextChange>>,
    /// Number of metas of other schemas that were added and removed.
    pub others: Vec<OtherChange>,
    /// True if the metas are the same, in another order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reordered: bool,
}

/// Name and heads of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSummary {
    /// Name of the channel.
    pub name: String,
    /// Entries that no other entry replaces or skips: exactly one, unless the channel is broken.
    pub heads: Vec<String>,
}

/// Changes of a channel that both states have. If neither heads nor entries differ, another field
/// does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelChange {
    /// Name of the channel.
    pub name: String,
    /// Heads of the channel, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<ValueChange<Vec<String>>>,
    /// Names of the entries that differ; a changed one updates other entries than before.
    pub entries: Differences<String, String>,
}

/// Name, version and image of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleSummary {
    /// Name of the bundle.
    pub name: String,
    /// Version of the bundle, if it has one.
    pub version: Option<String>,
    /// Image of the bundle; empty if the catalog holds its content.
    pub image: String,
}

/// Changes of a bundle that both states have. If no field below differs, other properties do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleChange {
    /// Name of the bundle.
    pub name: String,
    /// Version of the bundle, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<TextChange>,
    /// Image of the bundle, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<TextChange>,
    /// Related images that only the newer bundle has.
    pub images_added: Vec<String>,
    /// Related images that only the older bundle has.
    pub images_removed: Vec<String>,
}

/// Value that differs between the two states.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueChange<T> {
    /// Value in the older state.
    pub from: T,
    /// Value in the newer state.
    pub to: T,
}

/// Text that differs between the two states, or that only one of them has.
pub type TextChange = ValueChange<Option<String>>;

/// Target and message of a deprecation. The message is a text, or a change if both states have the
/// deprecation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deprecation<Message> {
    /// Package, channel or bundle that is deprecated.
    #[serde(flatten)]
    pub target: DeprecationTarget,
    /// Message to the user, for example which channel to use instead.
    pub message: Message,
}

/// Number of metas that OLM does not define or that do not fit their schema. A changed meta counts
/// as removed and added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherChange {
    /// Schema of the metas; empty for metas without one.
    pub schema: String,
    /// Number of metas that were added.
    pub added: u64,
    /// Number of metas that were removed.
    pub removed: u64,
}
