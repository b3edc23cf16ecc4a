#![doc = include_str!("../README.md")]

mod bridge;
#[cfg(feature = "testing")]
pub mod conformance;
mod error;
mod ext;
mod folder;
#[cfg(feature = "testing")]
pub mod memory;
mod range;
mod store;

pub use bridge::{StagedWriter, Staging, bridge};
pub use error::{Operation, StoreError};
pub use ext::{DOCUMENT_MAX, ReadError, StoreExt};
pub use folder::FolderStore;
#[cfg(feature = "testing")]
pub use memory::MemoryStore;
pub use store::{Body, Condition, Fetched, Get, Listed, Object, ObjectInfo, Staged, Store, Version};
