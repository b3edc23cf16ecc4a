#![doc = include_str!("../README.md")]

mod answer;
mod environment;
mod event;
mod wiring;

pub use answer::{INLINE_MAX, PAYLOAD_MAX};
pub use environment::ReaderEnvironment;
pub use event::function;
pub use wiring::serve;
