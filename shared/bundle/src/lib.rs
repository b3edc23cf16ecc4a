#![doc = include_str!("../README.md")]

mod contents;
mod crd;
mod documents;
mod error;
mod permissions;
mod report;
mod schema;

pub use contents::Contents;
pub use crd::UnsafeChange;
pub use documents::{BundleFiles, CatalogBundle};
pub use error::BundleError;
pub use report::BundleDifference;
