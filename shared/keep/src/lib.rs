#![doc = include_str!("../README.md")]

mod examine;
mod forgotten;
mod gc;
mod index;
mod missing;
mod names;
mod remove;
mod settle;
mod shard;
mod verify;

pub use examine::{Examined, examine};
pub use gc::{Amount, GcError, GcReport, Settings as GcSettings, gc, gc_until};
pub use index::{IndexError, read_index};
pub use missing::missing;
pub use names::add_name;
pub use remove::remove;
pub use settle::{Announced, SettleError, Watch};
pub use shard::{ShardError, read_shard};
pub use verify::{Finding, Problem, Verification, verify};
