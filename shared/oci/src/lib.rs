#![doc = include_str!("../README.md")]

mod documents;
mod folder;
mod layer;
pub mod media_type;

pub use documents::{Documents, LABEL, PLATFORMS, Platform, digest};
pub use folder::ROOT;
pub use layer::Layer;
