#![doc = include_str!("../README.md")]

mod access;
mod image_set;
mod image_tools;
mod offering;
mod prune;

pub use access::{RegistryAccess, reference};
pub use image_set::CarriedSet;
pub use image_tools::ImageTools;
pub use offering::{CatalogState, OfferPlace, Offering, required_images};
pub use prune::{PrunePlan, Pruning};
