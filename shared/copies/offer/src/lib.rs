#![doc = include_str!("../README.md")]

mod access;
mod image_set;
mod image_tools;
mod offering;
mod prune;
mod report;
mod steps;

pub use access::{RegistryAccess, reference};
pub use image_set::CarriedSet;
pub use image_tools::ImageTools;
pub use offering::{CatalogState, OfferPlace, Offering};
pub use prune::{PrunePlan, Pruning};
pub use report::{CarryReport, OfferOutcome, OfferReport, OfferedCatalog};
pub use steps::{CarrySite, ImportedFolder, PublishedSet};
