#![doc = include_str!("../README.md")]

mod bundles;
mod changes;
mod cluster_names;
mod comparison;
mod composer;
mod error;
mod image;
pub mod needs;
pub mod published;
mod question;
mod reader;
mod validation;

pub use bundles::{BundleReader, bundle_contents, bundle_difference, named_bundles};
pub use changes::{between_sources, changes, held_changes, package, shard_lines};
pub use cluster_names::SourceName;
pub use comparison::BundleComparison;
pub use composer::Composer;
pub use error::InspectError;
pub use image::write_image;
pub use question::PlanQuestion;
pub use reader::SourceReader;
pub use validation::{PlacedFinding, Validation};
