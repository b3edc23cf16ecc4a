//! The configuration of oc-mirror v2 (`mirror.openshift.io/v2alpha1`,
//! internal/pkg/api/v2alpha1/type_config.go).

use std::collections::{BTreeMap, BTreeSet};

use model::{ImageReference, SourceRef, text::did_you_mean};
use olm::{BundleSelection, Package, RequiredImages, SelectionError};
use serde::Serialize;
use serde_json::{Value, json};
use source::Source;

use crate::{CarryError, images::is_image};

/// Images of the catalogs that were read so far, the configuration that selects them, and names
/// that occur in the catalogs.
#[derive(Default)]
pub struct FoundImages {
    /// Images with the bundles that need them.
    pub needs: RequiredImages,
    operators: Vec<Value>,
    additional_images: BTreeSet<String>,
    /// Names of all packages, chosen or not.
    packages: BTreeSet<String>,
    channels: BTreeSet<String>,
}

impl FoundImages {
    /// Adds the names of all packages of a catalog.
    pub fn add_names<'a>(&mut self, packages: impl Iterator<Item = &'a String>) {
        self.packages.extend(packages.cloned());
    }

    /// Returns the chosen part of a package, or `None` if no channel of it was chosen.
    ///
    /// # Errors
    /// A channel without one head, if only heads are chosen.
    pub fn add_package(
        &mut self,
        name: &str,
        package: &Package,
        choice: &BundleSelection,
    ) -> Result<Option<Value>, SelectionError> {
        let chosen = choice.channels(name, package)?;
        let is_chosen = chosen.as_ref().is_none_or(|channels| !channels.is_empty());
        let channels: Vec<&str> = chosen
            .into_iter()
            .flatten()
            .map(|(channel, _)| channel)
            .collect();
        self.channels
            .extend(channels.iter().map(|&channel| channel.to_owned()));
        Ok(is_chosen.then(|| package_entry(name, package.default_channel.as_ref(), &channels)))
    }

    /// Adds a catalog with its chosen packages and their images. One of a registry becomes an entry
    /// of `operators`, pinned to the digest that was read.
    pub fn add_catalog(
        &mut self,
        source: &SourceRef,
        choice: &BundleSelection,
        packages: &[Value],
        needs: RequiredImages,
    ) {
        if matches!(source.reference.parse(), Ok(Source::Registry { .. })) {
            self.operators
                .push(operator_entry(source, choice, packages));
        } else {
            // oc-mirror reads nothing but images, so the images of such a catalog are listed one by
            // one.
            let images = needs.images.keys().filter(|image| is_image(image));
            self.additional_images.extend(images.cloned());
        }
        self.needs.merge(needs);
    }

    /// Refuses names that occur nowhere. Most of them are misspelt.
    ///
    /// # Errors
    /// The first such name, with a similar one.
    pub fn check_choice(&self, choice: &BundleSelection) -> Result<(), CarryError> {
        if let Some(package) = choice.packages.difference(&self.packages).next() {
            let similar = did_you_mean(package, self.packages.iter().map(String::as_str));
            let reason = format!("none of the catalogs has a package {package:?}{similar}");
            return Err(CarryError::Refused(reason));
        }
        if let Some(channel) = choice.channels.difference(&self.channels).next() {
            let reason = format!("none of the packages has a channel {channel:?}");
            return Err(CarryError::Refused(reason));
        }
        Ok(())
    }

    /// Returns the configuration that selects the images.
    pub fn image_set(&self) -> Value {
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

/// Returns the entry of a catalog of a registry.
fn operator_entry(source: &SourceRef, choice: &BundleSelection, packages: &[Value]) -> Value {
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
    operator
}

/// Returns the entry of a package with these chosen channels. None means all.
fn package_entry(name: &str, default_channel: Option<&String>, channels: &[&str]) -> Value {
    let mut entry = json!({"name": name});
    if let Some(newest) = channels.last() {
        // oc-mirror requires a default channel that is among the chosen ones. Most names of
        // channels contain a version, so the last one is the newest.
        if !default_channel.is_some_and(|default| channels.contains(&default.as_str())) {
            entry["defaultChannel"] = json!(newest);
        }
        entry["channels"] = named(channels);
    }
    entry
}

/// Returns a list of objects with a name.
fn named<T: Serialize>(names: impl IntoIterator<Item = T>) -> Value {
    names
        .into_iter()
        .map(|name| json!({"name": name}))
        .collect()
}

/// Repositories of a registry with their tags and digests (skopeo-sync(1), "YAML file content").
// No list may be empty: that would mean all tags.
#[derive(Default, Serialize)]
pub struct SkopeoRegistry {
    images: BTreeMap<String, BTreeSet<String>>,
}

/// Returns images as the file of `skopeo sync --src yaml`.
pub fn skopeo_sync<'a>(
    images: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, SkopeoRegistry> {
    let mut registries: BTreeMap<String, SkopeoRegistry> = BTreeMap::new();
    for image in images {
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
    use super::*;

    /// Tags that look like numbers stay texts, and no list is empty.
    #[test]
    fn skopeo_document_groups_versions_by_registry() {
        let images = [
            "q.io/a/b:1.0",
            "q.io/a/b:012",
            "q.io/a/b:1e5",
            "q.io/a/b@sha256:00",
            "nginx",
        ];
        insta::assert_snapshot!(serde_saphyr::to_string(&skopeo_sync(images)).unwrap(), @r#"
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
