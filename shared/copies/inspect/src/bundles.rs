use std::sync::Arc;

use source::{EmptyLayers, ImageContent, Source, Sources};
use upgrade::Bounds;
use upgrade::bundle::{BundleDifference, BundleFiles, CatalogBundle, CatalogBundles, Contents};
use work::Budget;

use crate::InspectError;

/// Reader of bundles that are images.
#[derive(Clone)]
pub struct BundleReader {
    images: Sources,
}

impl BundleReader {
    /// Creates a reader with the connections of a reader of sources.
    pub fn new(sources: Sources) -> Self {
        let images = sources.with_settings(|settings| settings.content = ImageContent::Bundle);
        Self { images }
    }

    /// Reads a bundle of a catalog. If the lines of the catalog lack its content, its image is read.
    ///
    /// # Errors
    /// A content that OLM refuses, and an image that cannot be read.
    pub async fn of_catalog(&self, bundle: CatalogBundle) -> Result<Contents, InspectError> {
        match bundle {
            CatalogBundle::Files(files) => bundle_contents(files).await,
            CatalogBundle::Image(image) => {
                let read = self.of_image(&image).await;
                read.map_err(|error| error.part(format!("cannot read its image {image:?}")))
            }
        }
    }

    /// Reads a bundle from an image reference, `oci:DIR` or `dir:DIR`.
    ///
    /// # Errors
    /// As [`Self::of_catalog`], and a text that names no image.
    pub async fn of_image(&self, text: &str) -> Result<Contents, InspectError> {
        let source: Source = text.parse()?;
        if matches!(source, Source::Archive(_) | Source::Git(_)) {
            let reason = "a bundle is an image reference, oci:DIR or dir:DIR";
            return Err(InspectError::refused(reason));
        }
        let digest = self.images.resolve(&source).await?;
        let none = EmptyLayers::default();
        let sink = BundleFiles::default();
        let (mut files, pull) = self.images.read(&source, &digest, &none, sink).await?;
        files.folders = pull.folders;
        bundle_contents(files).await
    }
}

/// Reads the content of a bundle from its files.
///
/// # Errors
/// A content that OLM refuses.
pub async fn bundle_contents(files: BundleFiles) -> Result<Contents, InspectError> {
    let bounds = Bounds::default();
    let budget = bounds.budget.clone();
    Ok(work::run(budget, move || Contents::read(&files, &bounds)).await??)
}

/// Reads the names and versions of the bundles among the lines of a package.
///
/// # Errors
/// More lines than the work of a command allows.
pub async fn named_bundles(lines: Vec<u8>) -> Result<CatalogBundles, InspectError> {
    let budget = Budget::default();
    budget.charge_bytes(lines.len())?;
    Ok(work::run(budget, move || CatalogBundles::new(lines)).await?)
}

/// Compares two bundles.
///
/// # Errors
/// Objects that cannot be compared.
pub async fn bundle_difference(
    old: Arc<Contents>,
    new: Arc<Contents>,
) -> Result<BundleDifference, InspectError> {
    let bounds = Bounds::default();
    let budget = bounds.budget.clone();
    let compared = work::run(budget, move || old.difference(&new, &bounds)).await?;
    compared.map_err(|error| {
        let error = InspectError::from(error);
        error.part("cannot compare the bundles".to_owned())
    })
}
