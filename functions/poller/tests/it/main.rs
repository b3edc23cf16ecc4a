//! The function with a registry in this process, a store in memory and no AWS.

mod collect;
mod manual;
mod queue;
mod schedule;
mod world;
