#![doc = include_str!("../README.md")]

mod error;
mod store;

pub use error::{Operation, StoreError};
pub use store::{Body, Condition, Fetched, Get, Listed, Object, ObjectInfo, Staged, Store, Version};
