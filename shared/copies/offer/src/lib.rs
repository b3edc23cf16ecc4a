#![doc = include_str!("../README.md")]

mod access;
mod image_set;
mod offering;

pub use access::{RegistryAccess, reference};
pub use image_set::CarriedSet;
pub use offering::{CatalogState, OfferPlace, Offering, required_images};
