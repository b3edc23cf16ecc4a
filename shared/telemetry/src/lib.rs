#![doc = include_str!("../README.md")]

mod chain;
mod logs;

pub use chain::{chain, line};
pub use logs::{Format, init};
