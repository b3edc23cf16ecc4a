//! Images with what is attached to them, as registries have them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, stream};
use model::{ImageReference, text::chain};
use olm::RequiredImages;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use source::{Digest, Source, Sources};

use crate::folder::keep_each_once;
use crate::prune::{additional_tag, carried_tag};
use crate::{
    CarryError, ImageSupply, MissingImage, SayLine, TargetRegistry, WantedImages, printable,
};

/// Requests to registries at the same time: enough to hide the delay of a distant one, too few to
/// look like an attack.
const LOOKUPS: usize = 8;

/// Image to copy, or a manifest that is attached to one.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CarriedImage {
    /// Reference in the registry that it comes from.
    pub image: String,
    /// Digest that the reference had when the image was listed.
    pub digest: String,
    /// True for a signature, an attestation or another manifest that is attached to an image.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attached: bool,
    /// True for an additional image that no catalog needs. `carry prune` leaves it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub additional: bool,
    /// Repository and tag in the registry of the site, if the image does not lie below the name of
    /// its registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Digests of the images of an index that are carried, if others of it are not. Each of them is
    /// an image of the list too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
}

/// Images of catalogs, as the registries have them.
#[derive(Debug, Default)]
pub struct ListedImages {
    /// Images, and what is attached to them.
    pub images: Vec<CarriedImage>,
    /// Images that could not be looked up, and images whose attachments could not.
    pub missing: Vec<MissingImage>,
}

/// Lists images with what is attached to them. What fails is said. An image is listed too if what is
/// attached to it cannot be looked up.
pub async fn list_images(
    sources: &Sources,
    images: impl Iterator<Item = &str>,
    say: SayLine<'_>,
) -> ListedImages {
    let lookups = images.map(|image| async move {
        let mut found = Vec::new();
        let looked_up = list_image(sources, image, &mut found).await;
        (image, found, looked_up)
    });
    let mut listed = ListedImages::default();
    let mut lookups = stream::iter(lookups).buffer_unordered(LOOKUPS);
    while let Some((image, found, looked_up)) = lookups.next().await {
        if let Err(error) = looked_up {
            let missing = MissingImage {
                attached: !found.is_empty(),
                ..MissingImage::new(image, chain(&error))
            };
            missing.report(&mut listed.missing, say);
        }
        listed.images.extend(found);
    }
    // What is attached to two images is copied once.
    keep_each_once(&mut listed.images);
    listed.missing.sort();
    listed
}

/// Adds the image to `found`, then what is attached to it.
async fn list_image(
    sources: &Sources,
    image: &str,
    found: &mut Vec<CarriedImage>,
) -> Result<(), CarryError> {
    let reference = ImageReference::new(image);
    let source = registry_image(&reference.to_string())?;
    let digest = sources.resolve(&source).await?;
    found.push(CarriedImage {
        image: reference.to_string(),
        digest: digest.to_string(),
        ..CarriedImage::default()
    });
    for version in sources.attachments(&source, &digest).await? {
        let separator = if version.contains(':') { '@' } else { ':' };
        let image = format!("{}{separator}{version}", reference.name());
        found.push(CarriedImage {
            digest: sources.resolve(&registry_image(&image)?).await?.to_string(),
            image,
            attached: true,
            ..CarriedImage::default()
        });
    }
    Ok(())
}

impl CarriedImage {
    /// Returns true for an index of which only some images are carried.
    pub fn is_sparse(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Checks a list that comes from elsewhere: its texts become paths and arguments of a program.
    pub(crate) fn check(&self) -> Result<(), CarryError> {
        registry_image(&self.image)?;
        if let Some(target) = &self.target {
            registry_image(&format!("registry.example/{target}"))?;
        }
        let has_digests = self
            .parts
            .iter()
            .chain([&self.digest])
            .all(|digest| digest.parse::<Digest>().is_ok());
        let is_whole = self.reference().to_string() == self.image && has_digests;
        is_whole
            .then_some(())
            .ok_or_else(|| no_reference(&self.image))
    }

    /// Returns the images of the index that are carried, and the index without the others.
    fn with_parts(&self, parts: &[Digest]) -> Vec<Self> {
        let name = self.reference().name();
        let mut all = Vec::new();
        for part in parts {
            all.push(Self {
                image: format!("{name}@{part}"),
                digest: part.to_string(),
                additional: self.additional,
                ..Self::default()
            });
        }
        all.push(Self {
            parts: parts.iter().map(Digest::to_string).collect(),
            ..self.clone()
        });
        all
    }

    /// Returns the parsed reference.
    pub(crate) fn reference(&self) -> ImageReference {
        ImageReference::new(&self.image)
    }

    /// Returns the reference by digest: a tag may have moved since the image was listed.
    pub(crate) fn pinned(&self) -> String {
        format!("{}@{}", self.reference().name(), self.digest)
    }

    /// Returns the image under its digest alone.
    pub(crate) fn by_digest(&self) -> Self {
        Self {
            image: self.pinned(),
            ..self.clone()
        }
    }

    /// Returns the folder of the image in a folder of images.
    pub(crate) fn folder_in(&self, images: &Path) -> PathBuf {
        let folder = images.join(disk_path(&self.image));
        // Versions before this one wrote colons.
        let earlier = images.join(&self.image);
        if earlier.exists() && !folder.exists() {
            return earlier;
        }
        folder
    }

    /// Returns the place of the image in a registry, in the words of skopeo.
    pub(crate) fn place_in(&self, target: &TargetRegistry) -> String {
        if let Some(place) = &self.target {
            return format!("docker://{}", target.own(place));
        }
        let reference = self.reference();
        // Registries such as Quay remove an image without a tag.
        let tag = match &reference.tag {
            Some(tag) => tag.clone(),
            None if self.additional => additional_tag(&self.digest),
            None => carried_tag(&self.digest),
        };
        format!("docker://{}:{tag}", target.place_of(&reference.name()))
    }
}

/// Looks up which images of an index its registry has. Returns those with the index, or `None` if
/// all or none are there, or if it is no index.
///
/// # Errors
/// A registry that does not answer.
pub async fn parts_that_exist(
    sources: &Sources,
    image: &CarriedImage,
) -> Result<Option<Vec<CarriedImage>>, CarryError> {
    let source = registry_image(&image.pinned())?;
    let digest = sources.resolve(&source).await?;
    let indexed = sources.indexed_images(&source, &digest).await?;
    let count = indexed.len();
    let mut parts = Vec::new();
    for part in indexed {
        let name = image.reference().name();
        let place = registry_image(&format!("{name}@{}", part.digest))?;
        if sources.exists(&place).await? {
            parts.push(part.digest);
        }
    }
    if parts.is_empty() || parts.len() == count {
        return Ok(None);
    }
    Ok(Some(image.with_parts(&parts)))
}

/// Takes of each index only the images for the platforms that are wanted. What fails is said.
pub async fn narrow_images(
    sources: &Sources,
    images: Vec<CarriedImage>,
    wanted: &WantedImages,
    say: SayLine<'_>,
) -> ListedImages {
    let lookups = images.into_iter().map(|image| async move {
        let narrowed = match wanted.platforms_of(&image) {
            None => Ok(vec![image.clone()]),
            Some(platforms) => parts_for(sources, &image, platforms).await,
        };
        (image, narrowed)
    });
    let mut listed = ListedImages::default();
    let mut lookups = stream::iter(lookups).buffer_unordered(LOOKUPS);
    while let Some((image, narrowed)) = lookups.next().await {
        match narrowed {
            Ok(images) => listed.images.extend(images),
            Err(error) => {
                let missing = MissingImage::new(&image.image, chain(&error));
                missing.report(&mut listed.missing, say);
            }
        }
    }
    keep_each_once(&mut listed.images);
    listed.missing.sort();
    listed
}

/// Takes only the images for some platforms, written as `os/architecture[/variant]`, with the index
/// that names them. An image that is no index is taken for whatever platform it is.
///
/// # Errors
/// A registry that does not answer, and an index without any of the platforms.
async fn parts_for(
    sources: &Sources,
    image: &CarriedImage,
    platforms: &BTreeSet<String>,
) -> Result<Vec<CarriedImage>, CarryError> {
    let source = registry_image(&image.pinned())?;
    let digest = sources.resolve(&source).await?;
    let indexed = sources.indexed_images(&source, &digest).await?;
    if indexed.is_empty() {
        return Ok(vec![image.clone()]);
    }
    let count = indexed.len();
    let mut parts = Vec::new();
    for part in indexed {
        let is_wanted = part.platform.is_some_and(|platform| {
            let general = format!("{}/{}", platform.os, platform.architecture);
            platforms.contains(&general) || platforms.contains(&platform.to_string())
        });
        if is_wanted {
            parts.push(part.digest);
        }
    }
    if parts.is_empty() {
        let platforms = platforms.iter().cloned().collect::<Vec<_>>().join(", ");
        let reason = format!("it has no image for any of the platforms {platforms}");
        return Err(CarryError::Refused(reason));
    }
    if parts.len() == count {
        return Ok(vec![image.clone()]);
    }
    Ok(image.with_parts(&parts))
}

/// Returns the path of an image on a disk. Its parts have no capital letters, colons and names of
/// devices, so that FAT, exFAT and NTFS take them.
pub(crate) fn disk_path(image: &str) -> PathBuf {
    image.split('/').map(disk_name).collect()
}

fn disk_name(part: &str) -> String {
    let mut name = String::new();
    for c in part.chars() {
        match c {
            // A part of a reference has neither signs of equality nor plus signs.
            ':' => name.push('='),
            'A'..='Z' => name.extend(['+', c.to_ascii_lowercase()]),
            c => name.push(c),
        }
    }
    if name.ends_with('.') {
        name.push('=');
    }
    let stem = name.split('.').next().unwrap_or_default();
    let is_numbered = |device: &str| {
        let number = stem.strip_prefix(device);
        number.is_some_and(|number| number.len() == 1 && number.as_bytes()[0].is_ascii_digit())
    };
    if matches!(stem, "con" | "prn" | "aux" | "nul") || is_numbered("com") || is_numbered("lpt") {
        name.insert(0, '=');
    }
    name
}

/// Asks a registry which of the images of catalogs it has below the names of their registries.
pub async fn target_images(
    sources: &Sources,
    target: &TargetRegistry,
    needs: &RequiredImages,
) -> ImageSupply {
    let lookups = needs.images.keys().map(|reference| async move {
        let has = target_has(sources, target, reference).await;
        (reference, has)
    });
    let mut supply = ImageSupply::default();
    let mut lookups = stream::iter(lookups).buffer_unordered(LOOKUPS);
    while let Some((reference, has)) = lookups.next().await {
        match has {
            Ok(true) => supply.add(reference),
            Ok(false) => supply.miss(&MissingImage::new(reference, "the registry has it not")),
            Err(error) => supply.miss(&MissingImage::new(reference, chain(&error))),
        }
    }
    supply
}

/// Returns true if a registry has an image of a catalog below the name of its registry.
///
/// # Errors
/// A text that is no reference, and a registry that does not answer.
pub async fn target_has(
    sources: &Sources,
    target: &TargetRegistry,
    reference: &str,
) -> Result<bool, CarryError> {
    let image = ImageReference::new(reference).to_string();
    let place = registry_image(&target.place_of(&image))?;
    Ok(sources.exists(&place).await?)
}

/// Returns true for the reference of an image that can be pulled, as podman and docker complete it.
/// Others must not reach another program: a space or a dash in one makes options of it.
pub(crate) fn is_image(text: &str) -> bool {
    registry_image(&ImageReference::new(text).to_string()).is_ok()
}

/// Parses the reference of an image in a registry.
pub(crate) fn registry_image(text: &str) -> Result<Source, CarryError> {
    match text.parse() {
        Ok(source @ Source::Registry { .. }) => Ok(source),
        _ => Err(no_reference(text)),
    }
}

fn no_reference(text: &str) -> CarryError {
    CarryError::Refused(format!("{text:?} is no image reference"))
}

/// Asks the registries for every image, by the reference with which it is pulled.
pub async fn check_images(sources: &Sources, needs: &RequiredImages) -> ImageChecks {
    let checks = needs.images.keys().map(|reference| async move {
        let check = match ImageReference::new(reference).to_string().parse::<Source>() {
            Ok(source) => sources.exists(&source).await.map_err(|error| chain(&error)),
            Err(error) => Err(chain(&error)),
        };
        (reference.to_owned(), check)
    });
    stream::iter(checks)
        .buffer_unordered(LOOKUPS)
        .collect()
        .await
}

/// Returns the references of images, sorted. What is none is said: a program that reads the list
/// would take it for something else.
pub fn pullable<'a>(needs: &'a RequiredImages, say: SayLine<'_>) -> Vec<&'a str> {
    let mut images = Vec::new();
    for image in needs.images.keys() {
        if is_image(image) {
            images.push(image.trim());
        } else {
            let image = printable(image);
            say(&format!(
                "warning: {image} is no image reference and is left out"
            ));
        }
    }
    images
}

/// Returns a line for each image that is missing, or about which the registry gave no answer, with
/// the bundles that need it.
pub fn missing(needs: &RequiredImages, checks: &ImageChecks) -> Vec<String> {
    let mut lines = Vec::new();
    for (image, needed_by) in &needs.images {
        let what = match checks.get(image) {
            Some(Ok(true)) | None => continue,
            Some(Ok(false)) => "missing".to_owned(),
            Some(Err(error)) => format!("unknown ({})", printable(error)),
        };
        let bundles: BTreeSet<&str> = needed_by.iter().map(|need| need.bundle.as_str()).collect();
        let bundles = printable(&bundles.into_iter().collect::<Vec<_>>().join(", "));
        let image = printable(image);
        lines.push(format!("{what}: {image}, needed by {bundles}"));
    }
    lines
}

/// Answers by the reference of the image: true if it exists, or the reason for which the registry
/// gave no answer.
pub type ImageChecks = BTreeMap<String, Result<bool, String>>;

/// Returns every image with its uses. `exists` is there with --check only, and null if the registry
/// gave no answer.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_path_has_no_name_that_a_file_system_refuses() {
        for (image, expected) in [
            ("quay.io/a/b@sha256:00", "quay.io/a/b@sha256=00"),
            ("h.example:5000/a:V1.0", "h.example=5000/a=+v1.0"),
            (
                "h.example/aux/com1/com10:v1.",
                "h.example/=aux/=com1/com10=v1.=",
            ),
            ("h.example/nul.d/con:1", "h.example/=nul.d/con=1"),
        ] {
            assert_eq!(disk_path(image), Path::new(expected), "{image}");
        }
    }
}
