//! Tests of the crate over a catalog in memory.

mod catalog;
mod hostile;
mod queries;
mod types;
