#![doc = include_str!("../README.md")]

mod contents;
mod crd;
mod error;
mod files;
mod manifest;
mod permissions;
mod report;
mod schema;

pub use contents::Contents;
pub use crd::UnsafeChange;
pub use error::BundleError;
pub use files::{BundleFolder, CatalogBundle, FILE_BYTES_MAX, FOLDER_BYTES_MAX};
pub use report::BundleDifference;
