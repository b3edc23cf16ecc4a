//! Images that a carry is asked for: those of catalogs and additional ones, without blocked ones.

use std::collections::{BTreeMap, BTreeSet};

use compose::{AdditionalImage, BlockedImages};
use model::ImageReference;
use olm::RequiredImages;

use crate::folder::keep_each_once;
use crate::{CarriedImage, MissingImage};

/// Images that are wanted.
#[derive(Debug, Default)]
pub struct WantedImages {
    /// References to look up.
    pub references: BTreeSet<String>,
    /// Images that must not be copied.
    pub blocked: Vec<MissingImage>,
    /// Images of catalogs, which lie below the name of their registry.
    of_catalogs: BTreeSet<String>,
    /// Additional images that lie below the name of their registry too.
    additional: BTreeSet<String>,
    /// Additional images at places of their own.
    placed: Vec<PlacedImage>,
    /// Platforms of each image, empty for all.
    platforms: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug)]
struct PlacedImage {
    image: String,
    target: String,
}

impl WantedImages {
    /// Collects the images of catalogs and additional ones.
    pub fn new(
        needs: &RequiredImages,
        additional: &[AdditionalImage],
        blocked: &BlockedImages,
        platforms: &BTreeMap<String, BTreeSet<String>>,
    ) -> Self {
        let mut wanted = Self::default();
        let all = BTreeSet::new();
        for (reference, uses) in &needs.images {
            if wanted.add(reference, blocked) {
                let image = ImageReference::new(reference).to_string();
                for need in uses {
                    let of_catalog = platforms.get(&need.catalog).unwrap_or(&all);
                    wanted.add_platforms(&image, of_catalog);
                }
                wanted.of_catalogs.insert(image);
            }
        }
        for additional in additional {
            if !wanted.add(&additional.name, blocked) {
                continue;
            }
            let reference = ImageReference::new(&additional.name);
            wanted.add_platforms(&reference.to_string(), &additional.platforms);
            let has_place =
                additional.target_repository.is_some() || additional.target_tag.is_some();
            if has_place {
                let target = place_of(&reference, additional);
                let image = reference.to_string();
                wanted.placed.push(PlacedImage { image, target });
            } else {
                wanted.additional.insert(reference.to_string());
            }
        }
        wanted
    }

    /// Adds an image unless it is blocked. Returns true if it was added.
    fn add(&mut self, reference: &str, blocked: &BlockedImages) -> bool {
        let Some(expression) = blocked.blocking(reference) else {
            self.references.insert(reference.to_owned());
            return true;
        };
        let cause =
            format!("blockedImages of the ImageSetConfiguration blocks it by {expression:?}");
        let missing = MissingImage::new(reference, cause);
        if !self.blocked.contains(&missing) {
            self.blocked.push(missing);
        }
        false
    }

    /// Adds the platforms of one use of an image. A use of all platforms counts for the others.
    fn add_platforms(&mut self, image: &str, platforms: &BTreeSet<String>) {
        match self.platforms.get_mut(image) {
            None => {
                self.platforms.insert(image.to_owned(), platforms.clone());
            }
            Some(known) if known.is_empty() || platforms.is_empty() => known.clear(),
            Some(known) => known.extend(platforms.iter().cloned()),
        }
    }

    /// Returns the platforms of an image; `None` for all.
    pub(crate) fn platforms_of(&self, image: &CarriedImage) -> Option<&BTreeSet<String>> {
        let platforms = self.platforms.get(&image.image);
        platforms.filter(|platforms| !platforms.is_empty() && !image.attached)
    }

    /// Gives the images that were found their places.
    pub fn placed(&self, images: Vec<CarriedImage>) -> Vec<CarriedImage> {
        let mut all = Vec::new();
        for image in images {
            for placed in &self.placed {
                if placed.image == image.image {
                    all.push(CarriedImage {
                        target: Some(placed.target.clone()),
                        ..image.clone()
                    });
                }
            }
            let is_of_catalog = image.attached || self.of_catalogs.contains(&image.image);
            if is_of_catalog || self.additional.contains(&image.image) {
                all.push(CarriedImage {
                    additional: !is_of_catalog,
                    ..image
                });
            }
        }
        keep_each_once(&mut all);
        all
    }
}

/// Returns repository and tag of an additional image in the registry of a site, as oc-mirror v2
/// chooses them.
fn place_of(reference: &ImageReference, additional: &AdditionalImage) -> String {
    let written = ImageReference::as_written(&additional.name);
    let repository = additional.target_repository.as_deref();
    let repository = repository.unwrap_or(&reference.repository);
    let tag = match (&additional.target_tag, written.tag, &reference.digest) {
        (Some(tag), _, _) => tag.clone(),
        (None, Some(tag), _) => tag,
        (None, None, Some(digest)) => digest.replace(':', "-"),
        (None, None, None) => "latest".to_owned(),
    };
    format!("{repository}:{tag}")
}

#[cfg(test)]
mod tests {
    use compose::ComposeFile;

    use super::*;

    #[test]
    fn wanted_images_have_places_and_no_blocked_ones() {
        let text = "kind: ImageSetConfiguration
mirror:
  additionalImages:
  - {name: quay.io/team/tool:v1}
  - {name: quay.io/team/other:v1, targetRepo: own/tool, targetTag: v2}
  - {name: quay.io/team/third@sha256:0000, targetRepo: third}
  - {name: quay.io/blocked/x:v1}
  blockedImages: [{name: '^quay[.]io/blocked/'}, {name: 'huge'}]
";
        let ComposeFile::ImageSet(set) = ComposeFile::parse(text).unwrap() else {
            panic!("it is an image set")
        };
        let mut needs = RequiredImages::default();
        for image in ["quay.io/team/other:v1", "quay.io/team/huge:v9"] {
            needs.images.insert(image.to_owned(), BTreeSet::new());
        }
        let wanted = WantedImages::new(&needs, &set.additional, &set.blocked, &BTreeMap::new());
        let blocked: Vec<&str> = wanted
            .blocked
            .iter()
            .map(|missing| &*missing.image)
            .collect();
        assert_eq!(blocked, ["quay.io/team/huge:v9", "quay.io/blocked/x:v1"]);
        let found = wanted.references.iter().map(|reference| CarriedImage {
            image: ImageReference::new(reference).to_string(),
            digest: "sha256:00".to_owned(),
            ..CarriedImage::default()
        });
        let placed = wanted.placed(found.collect());
        let places: Vec<String> = placed
            .iter()
            .map(|image| format!("{} {}", image.image, image.target.as_deref().unwrap_or("-")))
            .collect();
        assert_eq!(
            places,
            [
                "quay.io/team/other:v1 -",
                "quay.io/team/other:v1 own/tool:v2",
                "quay.io/team/third@sha256:0000 third:sha256-0000",
                "quay.io/team/tool:v1 -",
            ]
        );
    }
}
