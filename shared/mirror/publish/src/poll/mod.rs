//! Poll: resolve the source, compare, pull, render, publish.

mod attempt;
mod catalog_poll;
pub(crate) mod composed;
mod content;
pub(crate) mod facts;
mod fetched;
mod found;
mod hold;
mod inputs;
pub(crate) mod known;
pub(crate) mod metrics;
pub(crate) mod mirror;
pub(crate) mod objects;
mod once;
mod open_pull;
pub(crate) mod order;
pub(crate) mod polling;
pub(crate) mod pull;
mod pulled;
mod resolved;
mod retries;
mod ring;
pub(crate) mod schedule;
mod seen;
mod signatures;
mod validation;
