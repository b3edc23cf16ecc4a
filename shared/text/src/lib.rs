#![doc = include_str!("../README.md")]

mod chain;
mod line;

pub use chain::chain;
pub use line::{is_unprintable, line};
