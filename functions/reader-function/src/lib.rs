#![doc = include_str!("../README.md")]

mod answer;
mod environment;
mod event;

pub use answer::{INLINE_MAX, PAYLOAD_MAX};
pub use environment::ReaderEnvironment;
pub use event::function;
