//! Questions to registries for images.

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream};
use model::{ImageReference, text::chain};
use olm::RequiredImages;
use serde_json::{Value, json};
use source::{Source, SourceError, Sources};

/// Requests to registries at the same time: enough to hide the delay of a distant one, too few to look like an attack.
const CONCURRENT_CHECKS: usize = 8;

/// Asks the registries for every image, by the reference with which it is pulled.
pub async fn check_images(sources: &Sources, needs: &RequiredImages) -> ImageChecks {
    let checks = needs.images.keys().map(|reference| async move {
        let check = exists(sources, reference).await;
        (reference.to_owned(), check)
    });
    stream::iter(checks).buffer_unordered(CONCURRENT_CHECKS).collect().await
}

/// Returns true if the image exists, or the reason for which the registry gave no answer.
async fn exists(images: &Sources, reference: &str) -> Result<bool, String> {
    let source = ImageReference::new(reference).to_string().parse();
    let source: Source = source.map_err(|error: SourceError| chain(&error))?;
    images.exists(&source).await.map_err(|error| chain(&error))
}

/// Answers by the reference of the image: true if it exists, or the reason for which the registry gave no answer.
pub type ImageChecks = BTreeMap<String, Result<bool, String>>;

/// Returns every image with its uses. `exists` is there with --check only, and null if the registry gave no answer.
pub fn images_document(needs: &RequiredImages, checks: Option<&ImageChecks>) -> Value {
    let images = needs.images.iter().map(|(image, needed_by)| {
        let mut line = json!({"image": image, "neededBy": needed_by});
        match checks.and_then(|checks| checks.get(image)) {
            None => {}
            Some(Ok(exists)) => line["exists"] = json!(exists),
            Some(Err(error)) => {
                line["exists"] = Value::Null;
                line["error"] = json!(error);
            }
        }
        line
    });
    json!({"formatVersion": 1, "images": images.collect::<Vec<_>>()})
}
