//! Catalogs that a registry of a site offers to its clusters: a bundle is offered only if the
//! registry has all its images.

mod access;
mod image_set;
mod offering;

pub use access::{RegistryAccess, reference};
pub use image_set::CarriedSet;
pub use offering::{CatalogState, OfferPlace, Offering, required_images};
