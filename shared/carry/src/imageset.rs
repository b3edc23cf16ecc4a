//! The configuration of oc-mirror v2 (`mirror.openshift.io/v2alpha1`, internal/pkg/api/v2alpha1/type_config.go).

use std::collections::{BTreeMap, BTreeSet};

use model::{ImageReference, SourceRef};
use olm::{BundleSelection, RequiredImages};
use serde::Serialize;
use serde_json::{Value, json};
use source::Source;

/// Catalogs and images of a configuration.
#[derive(Default)]
pub struct OperatorImageSet {
    operators: Vec<Value>,
    additional_images: BTreeSet<String>,
}

impl OperatorImageSet {
    /// Adds the chosen packages of a catalog. One of a registry becomes an entry of `operators`, pinned to the digest that was read.
    pub fn add(&mut self, source: &SourceRef, choice: &BundleSelection, packages: &[Value], images: &RequiredImages) {
        if !matches!(source.reference.parse(), Ok(Source::Registry { .. })) {
            // oc-mirror reads nothing but images, so the images of such a catalog are listed one by one.
            self.additional_images.extend(images.images.keys().cloned());
            return;
        }
        let reference = ImageReference::new(&source.reference);
        let mut operator = json!({"catalog": format!("{}@{}", reference.name(), source.revision)});
        if let Some(tag) = reference.tag {
            operator["targetTag"] = json!(tag);
        }
        // Without it oc-mirror takes the heads of the channels.
        if !choice.heads_only {
            operator["full"] = json!(true);
        }
        if *choice != BundleSelection::default() && !packages.is_empty() {
            operator["packages"] = json!(packages);
        }
        self.operators.push(operator);
    }

    /// Returns the document.
    pub fn document(&self) -> Value {
        let mut mirror = json!({});
        if !self.operators.is_empty() {
            mirror["operators"] = json!(self.operators);
        }
        if !self.additional_images.is_empty() {
            mirror["additionalImages"] = named(&self.additional_images);
        }
        json!({"apiVersion": "mirror.openshift.io/v2alpha1", "kind": "ImageSetConfiguration", "mirror": mirror})
    }
}

/// Returns the entry of a package with these chosen channels. None means all.
pub(crate) fn package_entry(name: &str, default_channel: Option<&String>, channels: &[&str]) -> Value {
    let mut entry = json!({"name": name});
    if let Some(newest) = channels.last() {
        // oc-mirror requires a default channel that is among the chosen ones. Most names of channels contain a version, so the
        // last one is the newest.
        if !default_channel.is_some_and(|default| channels.contains(&default.as_str())) {
            entry["defaultChannel"] = json!(newest);
        }
        entry["channels"] = named(channels);
    }
    entry
}

/// Returns a list of objects with a name.
fn named<T: Serialize>(names: impl IntoIterator<Item = T>) -> Value {
    names.into_iter().map(|name| json!({"name": name})).collect()
}

/// Repositories of a registry with their tags and digests (skopeo-sync(1), "YAML file content").
// No list may be empty: that would mean all tags.
#[derive(Default, Serialize)]
pub struct SkopeoRegistry {
    images: BTreeMap<String, BTreeSet<String>>,
}

/// Returns the images as the file of `skopeo sync --src yaml`.
pub fn skopeo_sync(needs: &RequiredImages) -> BTreeMap<String, SkopeoRegistry> {
    let mut registries: BTreeMap<String, SkopeoRegistry> = BTreeMap::new();
    for image in needs.images.keys() {
        let reference = ImageReference::new(image);
        let version = reference.version().to_owned();
        let registry = registries.entry(reference.registry).or_default();
        let versions = registry.images.entry(reference.repository).or_default();
        versions.insert(version);
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
        insta::assert_snapshot!(serde_saphyr::to_string(&skopeo_sync(&needs)).unwrap(), @r#"
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
