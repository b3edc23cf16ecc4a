//! Tests of the reader function with recorded events.

mod direct;
mod events;
mod limits;
mod mirror;
mod process;
