#![doc = include_str!("../README.md")]

#[cfg(feature = "catalogs")]
mod catalogs;
#[cfg(feature = "clap")]
mod command_line;
pub mod logs;
mod problems;

#[cfg(feature = "catalogs")]
pub use self::catalogs::*;
#[cfg(feature = "clap")]
pub use self::command_line::{Guidance, parse_arguments};
pub use self::problems::{ConfigProblems, Variables, failure};
