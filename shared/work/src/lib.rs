#![doc = include_str!("../README.md")]

#[cfg(feature = "runtime")]
mod blocking;
mod budget;
mod memory;

#[cfg(feature = "runtime")]
pub use blocking::{StopOnDrop, run};
pub use budget::{Budget, DEFAULT_STEPS, OverBudget};
pub use memory::{MemoryPool, MemoryShare};
