use bundle::BundleFolder;
use source::{EmptyLayers, ImageFolder, Source, Sources};

use crate::CarryError;

/// Reads manifests and metadata of a bundle: of an image where its labels say they are, or of a folder `dir:DIR`.
///
/// # Errors
/// Other sources, and all errors of reading one.
pub async fn read_bundle(images: &Sources, source: &Source) -> Result<[BundleFolder; 2], CarryError> {
    let manifests = read_folder(images, source, ImageFolder::Manifests, "manifests");
    let metadata = read_folder(images, source, ImageFolder::Metadata, "metadata");
    // At the same time: most of it is waiting.
    let (manifests, metadata) = tokio::try_join!(manifests, metadata)?;
    Ok([manifests, metadata])
}

async fn read_folder(
    images: &Sources,
    source: &Source,
    folder: ImageFolder,
    name: &'static str,
) -> Result<BundleFolder, CarryError> {
    let images = images.clone().with_settings(|settings| settings.folder = folder);
    let source = match source {
        Source::Dir(path) => Source::Dir(path.join(name)),
        image @ (Source::Registry { .. } | Source::OciLayout { .. }) => image.clone(),
        Source::Archive(_) | Source::Git(_) => return Err(CarryError::NoBundle(source.to_string())),
    };
    let digest = images.resolve(&source).await?;
    let (none, sink) = (EmptyLayers::default(), BundleFolder::new(name));
    let (folder, _) = images.read(&source, &digest, &none, sink).await?;
    Ok(folder)
}
