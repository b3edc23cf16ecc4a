use std::collections::{BTreeMap, BTreeSet};

use olm::{Reference, RequiredImages};
use serde::Serialize;
use serde_json::{Value, json};

use super::{imageset, imageset::ChosenCatalog, print_json, print_text, print_yaml, printable};
use crate::cli::ImagesFormat;

/// The answer of a registry about an image.
pub(crate) enum ImageCheck {
    /// The registry answered that the image exists.
    Exists,
    /// The registry answered that the image does not exist.
    Missing,
    /// The registry gave no answer, with the reason.
    Unknown(String),
}

/// Answers by the reference of the image.
pub(crate) type ImageChecks = BTreeMap<String, ImageCheck>;

/// Prints the images in a format.
pub(crate) fn print(
    format: ImagesFormat,
    needs: &RequiredImages,
    catalogs: &[ChosenCatalog],
    checks: Option<&ImageChecks>,
) -> anyhow::Result<()> {
    match format {
        ImagesFormat::List => {
            let lines: Vec<String> = needs
                .iter()
                .map(|(image, _)| format!("{}\n", printable(image)))
                .collect();
            print_text(&lines.concat())
        }
        ImagesFormat::Json => print_json(&document(needs, checks)),
        ImagesFormat::SkopeoSync => print_yaml(&[skopeo(needs)]),
        ImagesFormat::Imageset => print_yaml(&[imageset::document(catalogs)]),
    }
}

/// Prints every image that is missing or unknown to standard error. Returns true if there is one.
pub(crate) fn print_missing(needs: &RequiredImages, checks: &ImageChecks) -> bool {
    let mut missing = false;
    for (image, needed_by) in needs.iter() {
        let what = match checks.get(image) {
            Some(ImageCheck::Exists) | None => continue,
            Some(ImageCheck::Missing) => "missing".to_owned(),
            Some(ImageCheck::Unknown(error)) => format!("unknown ({})", printable(error)),
        };
        missing = true;
        let bundles: BTreeSet<&str> = needed_by.iter().map(|need| need.bundle.as_str()).collect();
        let bundles: Vec<&str> = bundles.into_iter().collect();
        eprintln!(
            "{what}: {}, needed by {}",
            printable(image),
            printable(&bundles.join(", "))
        );
    }
    missing
}

/// Returns every image with its uses. `exists` is there with --check only, and null if the registry gave no answer.
fn document(needs: &RequiredImages, checks: Option<&ImageChecks>) -> Value {
    let images = needs.iter().map(|(image, needed_by)| {
        let mut line = json!({"image": image, "neededBy": needed_by});
        match checks.and_then(|checks| checks.get(image)) {
            None => {}
            Some(ImageCheck::Exists) => line["exists"] = json!(true),
            Some(ImageCheck::Missing) => line["exists"] = json!(false),
            Some(ImageCheck::Unknown(error)) => {
                line["exists"] = Value::Null;
                line["error"] = json!(error);
            }
        }
        line
    });
    json!({"formatVersion": 1, "images": images.collect::<Vec<_>>()})
}

/// Repositories of a registry with their tags and digests (skopeo-sync(1), "YAML file content").
// No list may be empty: that would mean all tags.
#[derive(Default, Serialize)]
struct SkopeoRegistry {
    images: BTreeMap<String, BTreeSet<String>>,
}

fn skopeo(needs: &RequiredImages) -> BTreeMap<String, SkopeoRegistry> {
    let mut registries: BTreeMap<String, SkopeoRegistry> = BTreeMap::new();
    for (image, _) in needs.iter() {
        let reference = Reference::new(image);
        let registry = registries.entry(reference.registry).or_default();
        let versions = registry.images.entry(reference.repository).or_default();
        versions.insert(reference.version);
    }
    registries
}

#[cfg(test)]
mod tests {
    use olm::{BundleSelection, PackageParser};

    use super::*;

    /// Tags that look like numbers stay texts, and no list is empty.
    #[test]
    fn skopeo_document_groups_versions_by_registry() {
        let bundle = |at: usize, image: &str| format!(r#"{{"image":"{image}","name":"b{at}","schema":"olm.bundle"}}"#);
        let images = [
            "q.io/a/b:1.0",
            "q.io/a/b:012",
            "q.io/a/b:1e5",
            "q.io/a/b@sha256:00",
            "nginx",
        ];
        let lines: Vec<String> = images.iter().enumerate().map(|(at, image)| bundle(at, image)).collect();
        let mut needs = RequiredImages::default();
        let package = PackageParser::parse(lines.join("\n").as_bytes());
        needs.add("c", "p", &package, &BundleSelection::default()).unwrap();
        insta::assert_snapshot!(crate::output::yaml(&[skopeo(&needs)]).unwrap(), @r#"
        docker.io:
          images:
            library/nginx:
            - latest
        q.io:
          images:
            a/b:
            - "012"
            - "1.0"
            - "1e5"
            - sha256:00
        "#);
    }
}
