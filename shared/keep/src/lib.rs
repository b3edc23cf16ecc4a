#![doc = include_str!("../README.md")]

mod examine;
mod missing;
mod remove;
mod shard;
mod verify;

pub use examine::{Examined, examine};
pub use missing::missing;
pub use remove::remove;
pub use shard::{ShardError, read_shard};
pub use verify::{Finding, Problem, Verification, verify};
