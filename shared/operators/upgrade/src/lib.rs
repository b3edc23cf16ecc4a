#![doc = include_str!("../README.md")]

pub mod bundle;
pub mod plan;
