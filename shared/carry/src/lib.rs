#![doc = include_str!("../README.md")]

mod checks;
mod error;
mod files;
mod folder;
mod found;
mod images;
mod imageset;
mod manifests;
mod mirrors;
mod skopeo;

pub use crate::checks::{ImageChecks, check_images, images_document};
pub use crate::error::CarryError;
pub use crate::files::{cluster_files, yaml};
pub use crate::folder::{CarriedFolder, lock_folder, replace_file};
pub use crate::found::FoundImages;
pub use crate::images::{CarriedImage, CopyCounts, ImageCopier, ImagePlace, SayLine, list_images, remove_partial};
pub use crate::imageset::{OperatorImageSet, SkopeoRegistry, skopeo_sync};
pub use crate::manifests::{
    CatalogRepository, GrpcHost, ManifestTarget, addressed_catalog_source, catalog_source, cluster_catalog,
};
pub use crate::mirrors::{ImageMirrors, TargetRegistry};
pub use crate::skopeo::Skopeo;

/// Returns foreign text on one line, with control characters escaped.
fn printable(text: &str) -> String {
    // Longer than any reference and any command of these.
    model::text::line(text, 4000)
}
