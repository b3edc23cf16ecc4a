#![doc = include_str!("../README.md")]

#[cfg(feature = "s3")]
mod bucket;
mod error;
mod export;
mod folder;
mod index;
mod layout;

#[cfg(feature = "s3")]
pub use bucket::BucketTree;
pub use error::TreeError;
pub use export::{TreeReport, TreeTarget, export};
pub use folder::FolderTree;
pub use layout::TreeForm;
