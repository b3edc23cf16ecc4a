#![doc = include_str!("../README.md")]

mod change_rows;
mod changes;
mod compare;
mod facts;
mod first_days;
mod graph;
mod icon;
mod icon_kind;
mod lifecycle;
mod package;
mod parser;
mod required_images;
mod requirement;
mod search;
mod svg;
mod upgrade;
mod validate;
mod version;

pub use changes::{
    BundleChange, BundleSummary, CHANGES_VERSION, Changes, ChannelChange, ChannelSummary,
    Deprecation, Differences, OtherChange, PackageChange, PackageSummary, TextChange, ValueChange,
};
pub use compare::{ChangedShard, changed_shards};
pub use facts::{FACT_KINDS, FactKind, FactsBuilder, RecordedShard, Recorder};
pub use first_days::{PackageBundles, first_days};
pub use graph::{ChannelGraph, GraphEntry, GraphFault};
pub use icon::Icon;
pub use icon_kind::IconKind;
pub use lifecycle::{
    Day, DayError, LIFECYCLES, Lifecycle, LifecyclePhase, LifecyclePlatform, LifecycleVersion,
};
pub use package::{
    Bundle, BundleVersions, Channel, ChannelEntry, DeprecationTarget, Package, RelatedImage,
    UnreadableMeta,
};
pub use parser::PackageParser;
pub use required_images::{BundleSelection, ImageUse, RequiredImages, SelectionError};
pub use requirement::{
    BundleFields, Constraint, ConstraintList, Gvk, PropertyFields, RequiredPackage,
};
pub use search::{
    FacetCount, FacetCounts, SEARCH, SEARCH_LIMIT_MAX, SearchFacet, SearchField, SearchFilter,
    SearchHit, SearchIndex, SearchQuery, SearchResults, TooManyTerms,
};
pub use upgrade::{
    EntryHits, FewestSteps, FirstSteps, UpgradeEntry, UpgradeGraph, UpgradeRule, UpgradeStarts,
    UpgradeStep, UpgradeWay, WayHit,
};
pub use validate::{
    CSV_METADATA, FINDINGS, FINDINGS_MAX, ICON, RELATED_IMAGES, Rule, RuleViolation, SchemaCounts,
    Severity, Shape, ShapeField, ShardValidator, ValidationSummary, decode_base64, field_position,
    is_cache_key,
};
pub use version::{VersionRange, VersionSpan, comparable_version, parse_version};
