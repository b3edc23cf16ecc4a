#![doc = include_str!("../README.md")]

mod after;
mod ask;
mod catalogs;
mod chance;
mod fault;
mod history;
mod job;
mod line;
mod mend;
mod reader;
mod rot;
mod run;
mod scenario;
mod site;
mod snapshot;
mod upkeep;
mod witness;
mod world;

pub use fault::{Fault, Faults, Kind, Operation, Side};
pub use rot::{Decay, Part};
pub use run::{Broken, Passed, run};
pub use scenario::{Job, Scenario, Step, Writer};
pub use world::Event;
