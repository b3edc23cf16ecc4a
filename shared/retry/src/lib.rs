#![doc = include_str!("../README.md")]

mod after;
mod waits;

pub use after::retry_after;
pub use waits::{Schedule, Waits};
