//! The configuration of oc-mirror v2 (`mirror.openshift.io/v2alpha1`, internal/pkg/api/v2alpha1/type_config.go).

use std::collections::BTreeSet;

use model::SourceRef;
use olm::{BundleSelection, Reference, RequiredImages};
use serde::Serialize;
use source::Source;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImageSet {
    api_version: &'static str,
    kind: &'static str,
    mirror: MirrorSection,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct MirrorSection {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    operators: Vec<OperatorEntry>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    additional_images: BTreeSet<NameEntry>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OperatorEntry {
    catalog: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_tag: Option<String>,
    /// True for all bundles, absent for the heads of the channels.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    full: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    packages: Vec<PackageEntry>,
}

/// The chosen part of one package.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PackageEntry {
    name: String,
    /// Present if the default channel of the package is not among the chosen ones: oc-mirror requires one that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    default_channel: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels: Vec<NameEntry>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct NameEntry {
    name: String,
}

impl Default for ImageSet {
    /// Returns a configuration without catalogs and images.
    fn default() -> Self {
        Self {
            api_version: "mirror.openshift.io/v2alpha1",
            kind: "ImageSetConfiguration",
            mirror: MirrorSection::default(),
        }
    }
}

impl ImageSet {
    /// Adds the chosen packages of a catalog. One of a registry becomes an entry of `operators`, pinned to the digest that was read.
    pub(super) fn add(
        &mut self,
        source: &SourceRef,
        choice: &BundleSelection,
        packages: Vec<PackageEntry>,
        images: &RequiredImages,
    ) {
        if !matches!(source.reference.parse(), Ok(Source::Registry { .. })) {
            // oc-mirror reads nothing but images, so the images of such a catalog are listed one by one.
            let images = images.iter().map(|(image, _)| NameEntry::new(image));
            self.mirror.additional_images.extend(images);
            return;
        }
        let reference = Reference::new(&source.reference);
        let is_whole = *choice == BundleSelection::default();
        self.mirror.operators.push(OperatorEntry {
            catalog: format!("{}/{}@{}", reference.registry, reference.repository, source.revision),
            target_tag: (!reference.is_digest).then_some(reference.version),
            full: !choice.heads_only,
            packages: if is_whole { Vec::new() } else { packages },
        });
    }
}

impl PackageEntry {
    /// Returns the entry of a package with these chosen channels. None means all.
    pub(super) fn new(name: &str, default_channel: Option<&String>, channels: &[&str]) -> Self {
        let has_default = |default: &String| channels.is_empty() || channels.contains(&default.as_str());
        // Most names of channels contain a version, so the last one is the newest.
        let other = channels.last().filter(|_| !default_channel.is_some_and(has_default));
        Self {
            name: name.to_owned(),
            default_channel: other.map(|&channel| channel.to_owned()),
            channels: channels.iter().copied().map(NameEntry::new).collect(),
        }
    }
}

impl NameEntry {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }
}
