#![doc = include_str!("../README.md")]

#[cfg(feature = "s3")]
mod bucket;
mod export;
mod folder;
mod index;
mod layout;

#[cfg(feature = "s3")]
pub use bucket::BucketTree;
pub use export::{TreeError, TreeReport, TreeTarget, export};
pub use folder::FolderTree;
pub use layout::TreeForm;
