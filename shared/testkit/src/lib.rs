#![doc = include_str!("../README.md")]

mod answer;
mod borders;
mod cosign;
mod cost;
mod differential;
mod documents;
mod files;
mod git;
mod image;
mod registry;
mod s3;
mod script;
mod serving;
mod until;
mod variant;

pub use crate::answer::Answer;
pub use crate::borders::BorderLines;
pub use crate::cosign::Cosign;
pub use crate::cost::grew_more_than_fourfold;
pub use crate::differential::{Differential, REFUSED, Random};
pub use crate::documents::{
    BuiltSnapshot, CurrentBuilder, SOURCE, SnapshotBuilder, current, first_published_at, snapshot,
};
pub use crate::files::{FileAnswer, FileRequest, FileServer};
pub use crate::git::{GitRepo, tree};
pub use crate::image::{Image, ImageBuilder, Layer, digest, gzip, index, zstd};
pub use crate::registry::{
    Builder as RegistryBuilder, CertificateFault, Fault, Kind, Registry, Request, Say, Wire,
};
pub use crate::s3::{S3, S3Builder, S3Call, S3Fault, S3Request, StoredObject};
pub use crate::until::until;
pub use crate::variant::variant;
