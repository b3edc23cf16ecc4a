#![doc = include_str!("../README.md")]

mod examine;
mod missing;
mod remove;
mod verify;

pub use examine::{Examined, examine};
pub use missing::missing;
pub use remove::remove;
pub use verify::{Finding, Problem, Verification, verify};
