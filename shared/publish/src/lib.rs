#![doc = include_str!("../README.md")]

mod catalogs;
mod env;
mod poll;
mod report;
mod stats;
mod status;
mod transaction;

pub use catalogs::{catalog_names, drop_stale_names, followers, is_listed, names_of_pointers, remove};
pub use env::Env;
pub use poll::{
    catalog_source::{Catalog, CatalogSource, ComposedSource, ComposedSourceError, InputPlace},
    error::PollError,
    facts::{CatalogFacts, FactReader, KnownFacts},
    metrics::{PollMetrics, PollProgress, metric},
    mirror::{Mirror, PollOptions, PollTimes, UpdateCheck},
    objects::StagedAll,
    order::PollOrder,
    pull::{PublishedShards, RenderSink},
    schedule::{LastPoll, Schedule, due},
    settings::{MirrorSettings, SourceLimits},
    validation::{ValidationMode, ValidationModeError},
};
pub use report::{ChangedPackages, Report, milliseconds};
pub use stats::{ObjectStats, find_unservable};
pub use status::record_status;
pub use transaction::{
    DatedGcState, Pointer, PublishError, RaceRetries, RetryableError, Transaction, TransactionOptions,
};
