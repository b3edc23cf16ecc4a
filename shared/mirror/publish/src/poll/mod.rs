//! Poll: resolve the source, compare, pull, render, publish.

mod composing;
pub(crate) mod facts;
mod inputs;
pub(crate) mod metrics;
pub(crate) mod mirror;
pub(crate) mod objects;
mod once;
mod open_pull;
pub(crate) mod order;
pub(crate) mod pull;
pub(crate) mod schedule;
mod signatures;
pub(crate) mod validation;
