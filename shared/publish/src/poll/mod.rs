//! Poll: resolve the source, compare, pull, render, publish.

mod catalog;
mod error;
mod guard;
mod limits;
mod metrics;
mod mirror;
mod objects;
mod once;
mod open_pull;
mod process;
mod progress;
mod pull;
mod schedule;
mod settings;
mod signatures;
mod stored_shards;
mod validation;

pub use self::{
    catalog::Catalog,
    error::PollError,
    guard::Suspicion,
    limits::SourceLimits,
    metrics::PollMetrics,
    mirror::{Mirror, PollOptions, PollTimes, UpdateCheck},
    progress::{PollProgress, ProgressCounts},
    pull::RenderSink,
    schedule::{Schedule, backoff},
    settings::MirrorSettings,
    validation::{InvalidCatalog, ValidationMode, ValidationModeError},
};
