#![doc = include_str!("../README.md")]

mod answers;
#[cfg(feature = "runtime")]
mod blocking;
mod budget;
mod memory;
mod threads;

pub use answers::{AnswerMemory, ClientMemory, HeldMemory, NoMemory, Sleep};
#[cfg(feature = "runtime")]
pub use blocking::{run, stop_on_drop};
pub use budget::{Budget, DEFAULT_STEPS, OverBudget};
pub use memory::{MemoryPool, MemoryShare};
pub use threads::for_each;
