#![doc = include_str!("../README.md")]

#[cfg(feature = "catalogs")]
mod catalogs;
pub mod logs;

#[cfg(feature = "catalogs")]
pub use self::catalogs::*;
