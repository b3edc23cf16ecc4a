//! Poll: resolve the source, compare, pull, render, publish.

mod catalog_source;
mod composing;
mod error;
mod facts;
mod inputs;
mod metrics;
mod mirror;
mod objects;
mod once;
mod open_pull;
mod order;
mod pull;
mod schedule;
mod settings;
mod signatures;
mod validation;

pub use self::{
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
