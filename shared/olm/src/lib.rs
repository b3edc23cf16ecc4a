#![doc = include_str!("../README.md")]

mod changed_shards;
mod changes;
mod channel;
mod compare;
mod graph;
mod meta;
mod package;
mod parser;
mod reference;
mod required_images;
mod search;
mod validate;
mod version;

pub use changed_shards::{ChangedShard, changed_shards};
pub use changes::{
    BundleChange, BundleChanges, BundleSummary, CHANGES_VERSION, Changes, ChannelChange, ChannelChanges,
    ChannelSummary, DeprecationChange, DeprecationChanges, DeprecationSummary, EntryChanges, Heads, OtherChange,
    PackageChange, PackageChanges, PackageSummary, TextChange,
};
pub use channel::{Channel, ChannelEntry};
pub use graph::{ChannelGraph, GraphEntry, GraphFault};
pub use package::{Bundle, DeprecationTarget, Package, RelatedImage, UnreadableMeta};
pub use parser::PackageParser;
pub use reference::Reference;
pub use required_images::{BundleSelection, ImageUse, RequiredImages, SelectionError};
pub use search::{
    FacetCount, SEARCH_LIMIT_MAX, SEARCH_VERSION, SearchFacets, SearchField, SearchFilter, SearchHit, SearchIndex,
    SearchQuery, SearchRecord, SearchRecorder, SearchResults,
};
pub use validate::{RULES_VERSION, Rule, RuleViolation, SchemaCounts, Severity, ShardValidator};
pub use version::{VersionRange, VersionRangeError};
