#![doc = include_str!("../README.md")]

mod image;
mod registry;

pub use crate::image::{Format, Image, ImageBuilder, Layer, digest, gzip, index};
pub use crate::registry::{Builder as RegistryBuilder, Fault, Kind, Registry, Request};
