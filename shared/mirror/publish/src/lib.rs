#![doc = include_str!("../README.md")]

mod catalog;
mod catalogs;
mod env;
mod error;
mod hold;
mod options;
mod poll;
mod report;
mod status;
mod transaction;

pub use catalog::{
    Catalog, CatalogSource, ComposedInput, ComposedSource, ComposedSourceError, InputPlace,
    InputRole, PulledSource, ValidationMode, ValidationModeError,
};
pub use catalogs::{catalog_names, drop_stale_names, is_listed, names_of_pointers, remove};
pub use env::Env;
pub use error::PollError;
pub use hold::{HoldSettings, release};
pub use options::{MirrorSettings, PollOptions, SourceLimits};
pub use poll::composed::ComposedCatalog;
pub use poll::facts::{CatalogFacts, FactReader, KnownFacts};
pub use poll::known::PollTimes;
pub use poll::metrics::{PollMetrics, PollPhase, PollProgress, metric};
pub use poll::mirror::Mirror;
pub use poll::objects::{StagedAll, WrittenAll};
pub use poll::order::PollOrder;
pub use poll::polling::UpdateCheck;
pub use poll::pull::{PublishedShards, RenderSink};
pub use poll::schedule::{LastPoll, Schedule, due};
pub use promotion::{Promotion, RingRule, RingSource};
pub use report::{Report, milliseconds};
pub use status::record_status;
pub use transaction::{
    DatedGcState, Pointer, PublishError, RaceRetries, RetryableError, Transaction,
    TransactionOptions,
};
