#![doc = include_str!("../README.md")]

mod after;
mod ask;
mod catalogs;
mod chance;
mod fault;
mod job;
mod line;
mod reader;
mod run;
mod scenario;
mod site;
mod snapshot;
mod witness;
mod world;

pub use fault::{Fault, Faults, Kind, Operation, Side};
pub use run::{Broken, Passed, run};
pub use scenario::{Job, Scenario, Step, Writer};
pub use world::Event;
