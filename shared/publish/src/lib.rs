#![doc = include_str!("../README.md")]

mod catalogs;
mod env;
mod gc;
pub mod notify;
mod poll;
mod remove;
mod report;
mod rollback;
mod status;
mod transaction;
mod verify;

pub use catalogs::{add_name, catalog_names};
pub use env::{Env, jittered};
pub use gc::{
    GcError, GcMetrics, GcOptions, GcReport, GcStep, NextStep, Retention, UnreadableState, collect_regularly, gc,
};
pub use poll::{
    Catalog, CatalogFacts, CatalogSource, ComposedRendering, ComposedSource, ComposedSourceError, FactReader,
    FindingsRecorder, InputCatalog, InputPlace, InvalidCatalog, KnownFacts, Mirror, MirrorSettings, NamedInput,
    PollError, PollMetrics, PollOptions, PollOrder, PollProgress, PollTimes, ProgressCounts, PublishedCatalog,
    RenderSink, Schedule, SourceLimits, Suspicion, UpdateCheck, ValidationMode, ValidationModeError, backoff,
    input_shards, named_catalogs, render_composition,
};
pub use remove::{followers, remove};
pub use report::{ChangedPackages, ObjectStats, Report};
pub use rollback::{RollbackError, RollbackOptions, RollbackTarget, rollback};
pub use status::{StatusUpdate, record_status};
pub use transaction::{Pointer, PublishError, RaceRetries, RetryableError, Transaction, TransactionOptions};
pub use verify::{
    Finding, IntegrityCheck, ObjectProblem, ShardError, Verification, load_verified, open_verified, verify,
};
