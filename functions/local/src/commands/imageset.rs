//! The configuration of oc-mirror v2 (`mirror.openshift.io/v2alpha1`, internal/pkg/api/v2alpha1/type_config.go).

use std::collections::BTreeSet;

use model::SourceRef;
use olm::Reference;
use serde::Serialize;
use source::Source;

/// The chosen part of one catalog.
pub(crate) struct ChosenCatalog {
    pub(crate) source: SourceRef,
    /// True if the whole catalog was chosen.
    pub(crate) whole: bool,
    pub(crate) heads_only: bool,
    pub(crate) parts: Vec<ChosenPackage>,
    pub(crate) images: Vec<String>,
}

/// The chosen part of one package.
pub(crate) struct ChosenPackage {
    pub(crate) name: String,
    pub(crate) default_channel: Option<String>,
    /// Chosen channels. Empty means all.
    pub(crate) channels: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImageSet {
    api_version: &'static str,
    kind: &'static str,
    mirror: MirrorSection,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MirrorSection {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    operators: Vec<OperatorEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional_images: Vec<NameEntry>,
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PackageEntry {
    name: String,
    /// Present if the default channel of the package is not among the chosen ones: oc-mirror requires one that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    default_channel: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels: Vec<NameEntry>,
}

#[derive(Serialize)]
struct NameEntry {
    name: String,
}

/// Returns the configuration. Catalogs of registries become `operators`, pinned to the digest that was read.
pub(super) fn document(catalogs: &[ChosenCatalog]) -> ImageSet {
    let (images, others): (Vec<&ChosenCatalog>, Vec<&ChosenCatalog>) =
        catalogs.iter().partition(|chosen| is_image(chosen));
    // oc-mirror reads nothing but images, so the images of such a catalog are listed one by one.
    let additional: BTreeSet<&String> = others.iter().flat_map(|chosen| &chosen.images).collect();
    ImageSet {
        api_version: "mirror.openshift.io/v2alpha1",
        kind: "ImageSetConfiguration",
        mirror: MirrorSection {
            operators: images.into_iter().map(operator).collect(),
            additional_images: additional.into_iter().map(named).collect(),
        },
    }
}

fn is_image(chosen: &ChosenCatalog) -> bool {
    matches!(chosen.source.reference.parse(), Ok(Source::Registry { .. }))
}

fn operator(chosen: &ChosenCatalog) -> OperatorEntry {
    let reference = Reference::new(&chosen.source.reference);
    let packages = if chosen.whole {
        Vec::new()
    } else {
        chosen.parts.iter().map(package).collect()
    };
    OperatorEntry {
        catalog: format!(
            "{}/{}@{}",
            reference.registry, reference.repository, chosen.source.revision
        ),
        target_tag: (!reference.is_digest).then_some(reference.version),
        full: !chosen.heads_only,
        packages,
    }
}

fn package(part: &ChosenPackage) -> PackageEntry {
    let has_default = |default: &String| part.channels.is_empty() || part.channels.contains(default);
    let default_channel = if part.default_channel.as_ref().is_some_and(has_default) {
        None
    } else {
        // Most names of channels contain a version, so the last one is the newest.
        part.channels.last().cloned()
    };
    PackageEntry {
        name: part.name.clone(),
        default_channel,
        channels: part.channels.iter().map(named).collect(),
    }
}

fn named(name: impl Into<String>) -> NameEntry {
    NameEntry { name: name.into() }
}
