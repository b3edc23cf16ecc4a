//! Who may read.

mod file;
mod guard;
mod login;
mod verified;

pub use file::ReadersError;
pub(crate) use guard::Guard;
