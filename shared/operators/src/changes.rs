use layout::Sha256;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use utoipa::ToSchema;

/// The version of the document. It grows when an older reader would misunderstand a newer document.
pub const CHANGES_VERSION: u32 = 1;

/// What differs between two Snapshots: a function of their content hashes. All lists are in byte order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct Changes {
    /// The version of this document's format: 1.
    pub format_version: u32,
    /// The content hash of the older state.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub from: Sha256,
    /// The content hash of the newer state.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub to: Sha256,
    /// Whether every package is told in full. If not, those with `omitted` have too much to be compared in one request:
    /// that they differ is certain, how is not told.
    pub complete: bool,
    /// What became of the packages.
    pub packages: PackageChanges,
    /// What became of the metas that belong to no package; null if nothing did.
    #[serde(default)]
    pub global: Option<PackageChange>,
}

/// What became of the packages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct PackageChanges {
    /// Only the newer state has them.
    pub added: Vec<PackageSummary>,
    /// Only the older state has them.
    pub removed: Vec<PackageSummary>,
    /// Both have them, with different content.
    pub changed: Vec<PackageChange>,
}

/// A package that came or went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct PackageSummary {
    /// Its name.
    pub name: String,
    /// Nothing but its name is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
    /// Its default channel.
    #[serde(default)]
    pub default_channel: Option<String>,
    /// Its channels.
    pub channels: Vec<ChannelSummary>,
    /// Its bundles.
    pub bundles: Vec<BundleSummary>,
    /// What of it is deprecated.
    pub deprecations: Vec<DeprecationSummary>,
}

/// A package of both states.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct PackageChange {
    /// Its name; empty for what belongs to no package.
    pub name: String,
    /// Nothing but its name is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
    /// Whether the `olm.package` itself differs: its default channel, icon, description.
    pub package: bool,
    /// The default channel, if another one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<TextChange>,
    /// What became of its channels.
    pub channels: ChannelChanges,
    /// What became of its bundles.
    pub bundles: BundleChanges,
    /// What became of its deprecations.
    pub deprecations: DeprecationChanges,
    /// How many metas of which other schemas came and went.
    pub others: Vec<OtherChange>,
    /// The same metas in another order, and nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reordered: bool,
}

/// What became of the channels of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct ChannelChanges {
    /// Only the newer state has them.
    pub added: Vec<ChannelSummary>,
    /// Only the older state has them.
    pub removed: Vec<ChannelSummary>,
    /// Both have them, with different content.
    pub changed: Vec<ChannelChange>,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct ChannelSummary {
    /// Its name.
    pub name: String,
    /// The entries that no other one replaces or skips: exactly one, unless the channel is broken.
    pub heads: Vec<String>,
}

/// A channel of both states. If neither heads nor entries differ, something else of it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct ChannelChange {
    /// Its name.
    pub name: String,
    /// The heads, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<Heads>,
    /// The entries that differ.
    pub entries: EntryChanges,
}

/// The heads of a channel before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct Heads {
    /// In the older state.
    pub from: Vec<String>,
    /// In the newer state.
    pub to: Vec<String>,
}

/// What became of the entries of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct EntryChanges {
    /// Only the newer state has them.
    pub added: Vec<String>,
    /// Only the older state has them.
    pub removed: Vec<String>,
    /// They update other entries than before.
    pub changed: Vec<String>,
}

/// What became of the bundles of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct BundleChanges {
    /// Only the newer state has them.
    pub added: Vec<BundleSummary>,
    /// Only the older state has them.
    pub removed: Vec<BundleSummary>,
    /// Both have them, with different content.
    pub changed: Vec<BundleChange>,
}

/// A bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct BundleSummary {
    /// Its name.
    pub name: String,
    /// Its version, if it says one.
    #[serde(default)]
    pub version: Option<String>,
    /// Its image; empty if the catalog holds its content.
    pub image: String,
}

/// A bundle of both states. If nothing below differs, its other properties do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct BundleChange {
    /// Its name.
    pub name: String,
    /// The version, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<TextChange>,
    /// The bundle's image, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<TextChange>,
    /// References that only the newer bundle relates to.
    pub images_added: Vec<String>,
    /// References that only the older bundle relates to.
    pub images_removed: Vec<String>,
}

/// A text before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct TextChange {
    /// In the older state, if there was one.
    pub from: Option<String>,
    /// In the newer state, if there is one.
    pub to: Option<String>,
}

/// What became of the deprecations of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct DeprecationChanges {
    /// Only the newer state has them.
    pub added: Vec<DeprecationSummary>,
    /// Only the older state has them.
    pub removed: Vec<DeprecationSummary>,
    /// The message is another one.
    pub changed: Vec<DeprecationChange>,
}

/// A deprecation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct DeprecationSummary {
    /// What is deprecated: `olm.package`, `olm.channel` or `olm.bundle`.
    pub schema: String,
    /// Its name; empty for the package.
    pub name: String,
    /// What to do instead.
    pub message: String,
}

/// A deprecation of both states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct DeprecationChange {
    /// What is deprecated: `olm.package`, `olm.channel` or `olm.bundle`.
    pub schema: String,
    /// Its name; empty for the package.
    pub name: String,
    /// The message.
    pub message: TextChange,
}

/// Metas of a schema that OLM's four are not, or that do not say what their schema promises. A changed one went and came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(ToSchema))]
pub struct OtherChange {
    /// The schema; empty for metas without one.
    pub schema: String,
    /// How many came.
    pub added: u64,
    /// How many went.
    pub removed: u64,
}
