#![doc = include_str!("../README.md")]

#[cfg(feature = "runtime")]
mod blocking;
mod budget;
mod memory;
mod threads;

#[cfg(feature = "runtime")]
pub use blocking::{run, stop_on_drop};
pub use budget::{Budget, DEFAULT_STEPS, OverBudget};
pub use memory::{MemoryPool, MemoryShare};
pub use threads::for_each;
