#![doc = include_str!("../README.md")]

mod after;
mod catalogs;
mod chance;
mod commands;
mod corruption;
mod fault;
mod handle;
mod history;
mod holds;
mod invariants;
mod job;
mod observed;
mod reader;
mod repairs;
mod request;
mod run;
mod scenario;
mod snapshot;
mod world;

pub use after::STRICT;
pub use corruption::{DamageKind, Part};
pub use fault::{Fault, Faults, Kind, Operation, Side};
pub use run::{Broken, run};
pub use scenario::{Job, Scenario, Step, Writer};
pub use world::{Event, Passed};
