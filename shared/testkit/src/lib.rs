#![doc = include_str!("../README.md")]

mod answer;
mod cosign;
mod image;
mod registry;
mod s3;

pub use crate::answer::Answer;
pub use crate::cosign::Cosign;
pub use crate::image::{Format, Image, ImageBuilder, Layer, digest, gzip, index, zstd};
pub use crate::registry::{Builder as RegistryBuilder, Fault, Flaw, Kind, Registry, Request, Say, Wire};
pub use crate::s3::{S3, S3Builder, S3Call, S3Fault, S3Request, StoredObject};
