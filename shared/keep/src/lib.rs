#![doc = include_str!("../README.md")]

mod examine;
mod missing;
mod names;
mod remove;
mod shard;
mod verify;

pub use examine::{Examined, examine};
pub use missing::missing;
pub use names::{add_name, remove_name};
pub use remove::remove;
pub use shard::{ShardError, read_shard};
pub use verify::{Finding, Problem, Verification, verify};
