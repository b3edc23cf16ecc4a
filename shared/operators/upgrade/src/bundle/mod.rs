//! Contents of bundles, and the changes from one to the next.

mod contents;
mod crd;
mod documents;
mod permissions;
mod report;
mod schema;

pub use contents::Contents;
pub use documents::{BundleError, BundleFiles, CatalogBundle, CatalogBundles};
pub use report::BundleDifference;
pub use schema::UnsafeChange;
