#![doc = include_str!("../README.md")]

mod error;
mod logs;

pub use error::{chain, line};
pub use logs::{Format, init};
