//! Poll: resolve the source, compare, pull, render, publish.

mod catalog;
mod catalog_source;
mod composing;
mod copies;
mod due;
mod error;
mod facts;
mod guard;
mod inputs;
mod limits;
mod metrics;
mod mirror;
mod objects;
mod once;
mod open_pull;
mod order;
mod progress;
mod pull;
mod schedule;
mod settings;
mod signatures;
mod stored_check;
mod stored_shards;
mod validation;

pub use self::{
    catalog::Catalog,
    catalog_source::{CatalogSource, ComposedSource, ComposedSourceError, InputPlace},
    due::{LastPoll, due},
    error::PollError,
    facts::{CatalogFacts, FactReader, KnownFacts},
    guard::Suspicion,
    limits::SourceLimits,
    metrics::PollMetrics,
    mirror::{Mirror, PollOptions, PollTimes, UpdateCheck},
    order::PollOrder,
    progress::{PollProgress, ProgressCounts},
    pull::RenderSink,
    schedule::Schedule,
    settings::MirrorSettings,
    validation::{InvalidCatalog, ValidationMode, ValidationModeError},
};
