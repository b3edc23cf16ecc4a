#![doc = include_str!("../README.md")]

mod answer;
mod environment;
mod event;
mod handler;
mod presigned;
mod wiring;

pub use answer::{INLINE_MAX, PAYLOAD_MAX};
pub use environment::ReaderEnvironment;
pub use handler::function;
pub use presigned::Presigned;
pub use wiring::serve;
