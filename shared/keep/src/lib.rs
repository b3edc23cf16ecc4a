#![doc = include_str!("../README.md")]

mod examine;
mod remove;
mod verify;

pub use examine::{Examined, examine};
pub use remove::remove;
pub use verify::{Finding, Problem, Verification, verify};
