#![doc = include_str!("../README.md")]

mod event;
mod receiver;

pub use event::{Data, Event};
pub use receiver::{Receiver, SendError};
