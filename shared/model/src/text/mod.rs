#![doc = include_str!("README.md")]

mod chain;
mod error;
mod line;
mod lines;

pub use chain::chain;
pub use error::error_line;
pub use line::{is_unprintable, line};
pub use lines::LineBuffer;
