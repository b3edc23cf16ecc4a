#![doc = include_str!("../README.md")]

mod composition;
mod rule;
mod source;

pub use self::composition::composition;
pub use self::rule::{Followed, Promotion, PromotionError, RingRule};
pub use self::source::{RingPackages, RingSource};

#[cfg(test)]
mod tests;
