use std::env;

use render::{ImageLayer, Rendering};
use source::{Pushed, Source, Sources};

use crate::InspectError;

/// Writes a catalog as an image to a layout, or pushes it.
///
/// # Errors
/// A folder or a registry that does not take the image, and a source that is no place for one.
pub async fn write_image(
    sources: &Sources,
    target: &Source,
    rendering: Rendering,
) -> Result<Pushed, InspectError> {
    let budget = rendering.budget().clone();
    match target {
        Source::OciLayout { dir, tag } => {
            let dir = dir.clone();
            let tag = tag.clone();
            let written = work::run(budget, move || {
                // Beside its place, so that it can be renamed.
                let layer = ImageLayer::new(&dir.join("blobs/sha256"), &rendering)?;
                layer.into_layout(&dir, tag.as_deref())
            });
            Ok(Pushed {
                digest: written.await??,
                was_there: false,
            })
        }
        Source::Registry { reference, .. } => {
            let written = work::run(budget, move || {
                ImageLayer::new(&env::temp_dir(), &rendering)?.into_parts()
            });
            let (layer, documents) = written.await??;
            Ok(sources.push(reference, documents, layer.into()).await?)
        }
        other => Err(InspectError::refused(format!(
            "{other} is no place for an image"
        ))),
    }
}
