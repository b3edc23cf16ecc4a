#![doc = include_str!("../README.md")]

mod archive;
mod documents;
mod fbc;
mod ignore;
mod images;
mod json;
mod manifest;
mod memory;
#[cfg(any(test, feature = "openpgp"))]
mod messages;
mod oci;
mod overlay;
mod policies;
mod publisher;
mod references;
mod registry;
mod runtime;
mod seeds;
mod site;
mod tar;
mod yaml;

pub use seeds::{Seeds, TARGETS, Target};

// Instrumented crates need the runtime of libFuzzer, also in a program that is not a target.
#[cfg(fuzzing)]
use libfuzzer_sys as _;
