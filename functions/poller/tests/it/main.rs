//! The function with a registry in this process, a store in memory and no AWS.

mod collect;
mod events;
mod failed;
mod manual;
mod memory;
mod queue;
mod schedule;
mod speed;
mod world;
