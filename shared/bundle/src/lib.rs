#![doc = include_str!("../README.md")]

mod contents;
mod crd;
mod error;
mod files;
mod manifest;
mod permissions;
mod report;
mod schema;

pub use contents::{BundleIdentity, BundleSize, Contents};
pub use crd::UnsafeChange;
pub use error::BundleError;
pub use files::{BUNDLE_BYTES_MAX, BundleFiles, BundleFolder, CatalogBundle, FILE_BYTES_MAX};
pub use permissions::Permission;
pub use report::{BundleDifference, BundleReport};
