#![doc = include_str!("../README.md")]

mod bounds;
pub mod bundle;
pub mod plan;

pub use bounds::{Bounds, Exceeded};
