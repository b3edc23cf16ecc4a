#![doc = include_str!("../README.md")]

mod answers;
#[cfg(feature = "runtime")]
mod blocking;
mod budget;
#[cfg(feature = "files")]
mod file;
mod memory;
mod server;
mod threads;

pub use answers::{AnswerMemory, ClientMemory, HeldMemory, NoMemory, Sleep};
#[cfg(feature = "runtime")]
pub use blocking::{run, stop_on_drop};
pub use budget::{Budget, DEFAULT_STEPS, OverBudget};
#[cfg(feature = "files")]
pub use file::{files_with_extension, is_of_shell, open_file, open_or_create, read_file};
pub use memory::{MemoryPool, MemoryShare};
pub use server::ServerLimits;
pub use threads::for_each;
