#![doc = include_str!("../README.md")]

mod catalogs;
mod env;
mod poll;
mod report;
mod stats;
mod status;
mod transaction;

pub use catalogs::{
    catalog_names, drop_stale_names, followers, is_listed, names_of_pointers, remove,
};
pub use env::Env;
pub use poll::catalog_source::{
    Catalog, CatalogSource, ComposedSource, ComposedSourceError, InputPlace,
};
pub use poll::error::PollError;
pub use poll::facts::{CatalogFacts, FactReader, KnownFacts};
pub use poll::metrics::{PollMetrics, PollProgress, metric};
pub use poll::mirror::{Mirror, PollOptions, PollTimes, UpdateCheck};
pub use poll::objects::StagedAll;
pub use poll::order::PollOrder;
pub use poll::pull::{PublishedShards, RenderSink};
pub use poll::schedule::{LastPoll, Schedule, due};
pub use poll::settings::{MirrorSettings, SourceLimits};
pub use poll::validation::{ValidationMode, ValidationModeError};
pub use report::{ChangedPackages, Report, milliseconds};
pub use stats::{ObjectStats, find_unservable};
pub use status::record_status;
pub use transaction::{
    DatedGcState, Pointer, PublishError, RaceRetries, RetryableError, Transaction,
    TransactionOptions,
};
