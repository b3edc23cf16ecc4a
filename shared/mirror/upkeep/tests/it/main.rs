//! Publications, garbage collection and their clocks, on the memory store.

mod events;
mod faults;
mod gc;
mod kit;
mod transaction;
mod verification;
