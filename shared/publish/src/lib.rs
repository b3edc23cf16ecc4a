#![doc = include_str!("../README.md")]

mod catalogs;
mod env;
mod poll;
mod report;
mod stats;
mod status;
mod transaction;

pub use catalogs::{catalog_names, drop_stale_names, followers, is_listed, names_of_pointers, remove};
pub use env::{Env, jittered};
pub use poll::{
    Catalog, CatalogFacts, CatalogSource, ComposedSource, ComposedSourceError, FactReader, InputPlace, KnownFacts,
    LastPoll, Mirror, MirrorSettings, PollError, PollMetrics, PollOptions, PollOrder, PollProgress, PollTimes,
    PublishedShards, RenderSink, Schedule, SourceLimits, StagedAll, UpdateCheck, ValidationMode, ValidationModeError,
    due, metric,
};
pub use report::{ChangedPackages, Report, milliseconds};
pub use stats::{ObjectStats, find_unservable};
pub use status::record_status;
pub use transaction::{
    DatedGcState, Pointer, PublishError, RaceRetries, RetryableError, Transaction, TransactionOptions,
};
