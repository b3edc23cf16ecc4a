#![doc = include_str!("../README.md")]

mod archive;
mod conditional;
mod documents;
mod fbc;
mod field;
mod grammar;
mod ignore;
mod images;
mod json;
mod manifest;
mod memory;
#[cfg(any(test, feature = "openpgp"))]
mod messages;
mod negotiation;
mod oci;
mod overlay;
mod policies;
mod publisher;
mod ranges;
mod references;
mod registry;
mod replay;
mod runtime;
mod seeds;
mod site;
mod tar;
mod yaml;

pub use self::registry::records;
pub use archive::{archive, volume};
pub use conditional::if_none_match;
pub use documents::{current, index, snapshot};
pub use ignore::indexignore;
pub use json::json;
pub use manifest::manifest;
#[cfg(any(test, feature = "openpgp"))]
pub use messages::openpgp;
pub use negotiation::accept_encoding;
pub use oci::oci;
pub use overlay::overlay;
pub use policies::policy;
pub use ranges::ranges;
pub use references::references;
pub use replay::replay;
pub use seeds::{Seeds, TARGETS, Target};
pub use tar::tar;
pub use yaml::yaml;

// Instrumented crates need the runtime of libFuzzer, also in a program that is not a target.
#[cfg(fuzzing)]
use libfuzzer_sys as _;

/// Main program of a target: libFuzzer calls the function with one input after another. Without libFuzzer, the program calls
/// it with the files on its command line.
#[macro_export]
macro_rules! target {
    ($target:ident) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::$target(input));

        #[cfg(not(fuzzing))]
        fn main() -> std::io::Result<()> {
            fuzz::replay(fuzz::$target)
        }
    };
}
