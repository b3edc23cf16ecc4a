#![doc = include_str!("../README.md")]

use std::{io, path::PathBuf};

mod copier;
mod folder;
mod image_folder;
mod images;
mod imageset;
mod lookaside;
mod manifests;
mod mirrors;
mod offer;
mod prune;
mod skopeo;
mod wanted;

pub use crate::copier::{CopyReport, ImageCopier, ImagePlace, remove_partial};
pub use crate::folder::{CarriedFolder, images_folder, lock_folder, replace_file};
pub use crate::images::{
    CarriedImage, ImageChecks, ListedImages, check_images, images_document, list_images, missing,
    narrow_images, parts_that_exist, pullable, target_has, target_images,
};
pub use crate::imageset::{FoundImages, SkopeoRegistry, skopeo_sync};
pub use crate::lookaside::lookaside_scopes;
pub use crate::manifests::{
    CatalogRepository, ClusterImages, LATEST, ManifestTarget, addressed_catalog_source,
    catalog_source, check_names, cluster_catalog, cluster_files, mirror_set_name, registry_host,
    yaml,
};
pub use crate::mirrors::{ImageMirrors, TargetRegistry};
pub use crate::offer::{
    BundleGap, ImageSupply, MissingImage, OfferGap, OfferedPart, PackageRest, name_uses,
};
pub use crate::prune::{PrunableManifest, RepositoryContent};
pub use crate::skopeo::Skopeo;
pub use crate::wanted::WantedImages;

/// Receiver of the lines for people: commands, and what failed.
pub type SayLine<'a> = &'a (dyn Fn(&str) + Sync);

/// Error of copying images, and of naming manifests.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    /// A step that cannot be done. Holds the reason for people; no caller handles one reason in
    /// another way.
    #[error("{0}")]
    Refused(String),
    /// The program skopeo cannot be started.
    #[error("cannot run skopeo")]
    Run(#[source] io::Error),
    /// A file or folder cannot be read or written.
    #[error("cannot use {}", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// A registry failed.
    #[error(transparent)]
    Source(#[from] source::Error),
}

impl CarryError {
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(reason.into())
    }

    /// Returns the error of a file.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |error| Self::File(path, error)
    }
}

/// Returns foreign text on one line, with control characters escaped.
fn printable(text: &str) -> String {
    // Longer than any reference and any command of these.
    model::text::line(text, 4000)
}
