#![doc = include_str!("../README.md")]

#[cfg(feature = "catalogs")]
mod catalogs;
pub mod logs;
mod problems;

#[cfg(feature = "catalogs")]
pub use self::catalogs::*;
pub use self::problems::{ConfigProblems, Variables};
