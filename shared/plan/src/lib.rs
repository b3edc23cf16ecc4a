#![doc = include_str!("../README.md")]

mod draw;
#[cfg(test)]
mod testing;
mod ways;

pub use draw::{GraphFormat, draw};
pub use ways::{ChannelWay, UnknownVersion, UpgradeStep, Ways};
