//! The function, event by event.

mod direct;
mod events;
mod limits;
mod mirror;
mod process;
