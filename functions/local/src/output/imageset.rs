//! oc-mirror v2's configuration (`mirror.openshift.io/v2alpha1`, internal/pkg/api/v2alpha1/type_config.go).

use std::collections::BTreeSet;

use layout::SourceRef;
use operators::Reference;
use serde::Serialize;

/// What was chosen of one catalog.
pub(crate) struct Chosen {
    pub(crate) source: SourceRef,
    /// Everything.
    pub(crate) whole: bool,
    pub(crate) heads_only: bool,
    pub(crate) parts: Vec<Part>,
    pub(crate) images: Vec<String>,
}

/// What was chosen of one package.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) default_channel: Option<String>,
    /// The channels that were chosen; all, if none is named.
    pub(crate) channels: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImageSet {
    api_version: &'static str,
    kind: &'static str,
    mirror: Mirror,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Mirror {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    operators: Vec<Operator>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional_images: Vec<Named>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Operator {
    catalog: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_tag: Option<String>,
    /// Not only heads.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    full: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    packages: Vec<Package>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    name: String,
    /// Needed where the package's own is not among the channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    default_channel: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    name: String,
}

/// Catalogs of registries become `operators`, pinned to what the mirror has read. oc-mirror cannot read a folder: the
/// images of such a catalog become `additionalImages`.
pub(super) fn document(catalogs: &[Chosen]) -> ImageSet {
    let (images, folders): (Vec<&Chosen>, Vec<&Chosen>) = catalogs.iter().partition(|chosen| is_image(chosen));
    let additional: BTreeSet<&String> = folders.iter().flat_map(|chosen| &chosen.images).collect();
    ImageSet {
        api_version: "mirror.openshift.io/v2alpha1",
        kind: "ImageSetConfiguration",
        mirror: Mirror {
            operators: images.into_iter().map(operator).collect(),
            additional_images: additional.into_iter().map(named).collect(),
        },
    }
}

fn is_image(chosen: &Chosen) -> bool {
    let source = &chosen.source.reference;
    !source.starts_with("dir:") && !source.starts_with("oci:")
}

fn operator(chosen: &Chosen) -> Operator {
    let reference = Reference::new(&chosen.source.reference);
    let packages = match chosen.whole {
        true => Vec::new(),
        false => chosen.parts.iter().map(package).collect(),
    };
    Operator {
        catalog: format!(
            "{}/{}@{}",
            reference.registry, reference.repository, chosen.source.digest
        ),
        target_tag: (!reference.is_digest).then_some(reference.version),
        full: !chosen.heads_only,
        packages,
    }
}

fn package(part: &Part) -> Package {
    let has_default = |default: &String| part.channels.is_empty() || part.channels.contains(default);
    let default_channel = match part.default_channel.as_ref().is_some_and(has_default) {
        true => None,
        // Names of channels mostly grow with their versions.
        false => part.channels.last().cloned(),
    };
    Package {
        name: part.name.clone(),
        default_channel,
        channels: part.channels.iter().map(named).collect(),
    }
}

fn named(name: impl Into<String>) -> Named {
    Named { name: name.into() }
}
