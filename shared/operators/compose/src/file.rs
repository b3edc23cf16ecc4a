//! Files that describe compositions.

use std::{collections::BTreeSet, str::FromStr};

use model::{CatalogName, ImageReference, yaml::plain_error};
use serde::{Deserialize, de::DeserializeOwned, de::IgnoredAny};
use serde_saphyr::Spanned;

use crate::{
    ComposeError, Composition, CompositionInput, DependencyRule, PackageSelection, Selection,
};

/// Content of a file that describes compositions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposeFile {
    /// One composition, in the form of `compose:` in `catalogs.yaml`.
    Composition(Composition),
    /// ImageSetConfiguration of oc-mirror v2.
    ImageSet(ImageSet),
    /// FilterConfiguration. It names no catalog, so the caller adds one.
    Filter(Selection),
}

/// Compositions of an ImageSetConfiguration, one for each entry of `mirror.operators`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageSet {
    /// Compositions with their names, in the order of the file.
    pub entries: Vec<(CatalogName, Composition)>,
    /// Names of the sections and fields that the mirror does not use.
    pub ignored: Vec<&'static str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileHeader {
    api_version: Option<String>,
    kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FilterFields {
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    #[serde(default)]
    packages: Vec<PackageSelection>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ImageSetFields {
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    mirror: MirrorFields,
    archive_size: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct MirrorFields {
    operators: Vec<OperatorFields>,
    platform: Option<IgnoredAny>,
    additional_images: Option<IgnoredAny>,
    helm: Option<IgnoredAny>,
    blocked_images: Option<IgnoredAny>,
    samples: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OperatorFields {
    catalog: Spanned<String>,
    target_catalog: Option<String>,
    target_tag: Option<String>,
    #[serde(default)]
    full: bool,
    #[serde(default)]
    packages: Vec<PackageSelection>,
    #[serde(default)]
    skip_dependencies: bool,
    target_catalog_source_template: Option<IgnoredAny>,
    platforms: Option<IgnoredAny>,
}

/// Fields of oc-mirror v1 and their place in v2.
const OLD_FIELDS: &[(&str, &str)] = &[
    ("apiVersion", "write mirror.openshift.io/v2alpha1"),
    ("storageConfig", "remove it: oc-mirror v2 keeps no metadata"),
    ("targetName", "write targetCatalog"),
    ("startingVersion", "write minVersion"),
    ("minBundle", "write minVersion"),
    (
        "headsOnly",
        "write full: true for headsOnly: false, else remove it",
    ),
    ("originalRef", "remove it"),
    ("ocp", "write platform"),
];

impl ComposeFile {
    /// Parses the text of a file. Its `kind` tells the format; a composition has none.
    ///
    /// # Errors
    /// Names the line of what is malformed, unknown or ambiguous.
    pub fn parse(text: &str) -> Result<Self, ComposeError> {
        let header: FileHeader = read(text)?;
        let Some(kind) = header.kind else {
            return read(text).map(Self::Composition);
        };
        let version = header.api_version.unwrap_or_default();
        match (kind.as_str(), version.as_str()) {
            ("ImageSetConfiguration", "mirror.openshift.io/v2alpha1") => {
                image_set(text).map(Self::ImageSet)
            }
            ("ImageSetConfiguration", "mirror.openshift.io/v1alpha2") => Err(old_format(text)),
            ("FilterConfiguration", "olm.operatorframework.io/filter/mirror/v1alpha1") => {
                let FilterFields { packages, .. } = read(text)?;
                Ok(Self::Filter(Selection {
                    full: false,
                    packages,
                }))
            }
            _ => Err(ComposeError::Refused(format!(
                "{kind} of {version:?} is not known: use ImageSetConfiguration of mirror.openshift.io/v2alpha1, \
                 FilterConfiguration of olm.operatorframework.io/filter/mirror/v1alpha1, or a composition without kind"
            ))),
        }
    }
}

impl ImageSet {
    /// Returns the composition with this name, or the only one.
    ///
    /// # Errors
    /// Lists the names if none fits, or if several do.
    pub fn entry(self, name: Option<&str>) -> Result<(CatalogName, Composition), ComposeError> {
        let mut names = Vec::new();
        let mut found = Vec::new();
        for entry in self.entries {
            names.push(entry.0.to_string());
            if name.is_none_or(|name| name == entry.0.as_str()) {
                found.push(entry);
            }
        }
        if found.len() == 1 {
            return Ok(found.remove(0));
        }
        if names.is_empty() {
            let problem = "mirror.operators has no entry";
            return Err(ComposeError::Refused(problem.to_owned()));
        }
        let entries = match name {
            Some(name) => format!("no entry {name}"),
            None => "several entries".to_owned(),
        };
        let problem = format!("the file has {entries}: choose one of {}", names.join(", "));
        Err(ComposeError::Refused(problem))
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, ComposeError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        // The default message speaks to programmers, and names options that users do not have.
        let message = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
        let Some(location) = error.location() else {
            return ComposeError::Refused(message);
        };
        let line = location.line();
        let place = format!(" at line {line}, column {}", location.column());
        let problem = plain_error(message.trim_end_matches(&place));
        ComposeError::Refused(format!("line {line}: {problem}"))
    })
}

fn image_set(text: &str) -> Result<ImageSet, ComposeError> {
    let file: ImageSetFields = read(text)?;
    let mirror = file.mirror;
    let mut operators = mirror.operators.iter();
    let has_template = operators.any(|entry| entry.target_catalog_source_template.is_some());
    let mut operators = mirror.operators.iter();
    let has_platforms = operators.any(|entry| entry.platforms.is_some());
    let mut ignored = Vec::new();
    for (name, is_there) in [
        ("platform", mirror.platform.is_some()),
        ("additionalImages", mirror.additional_images.is_some()),
        ("helm", mirror.helm.is_some()),
        ("blockedImages", mirror.blocked_images.is_some()),
        ("samples", mirror.samples.is_some()),
        ("archiveSize", file.archive_size.is_some()),
        ("targetCatalogSourceTemplate", has_template),
        ("platforms", has_platforms),
    ] {
        if is_there {
            ignored.push(name);
        }
    }

    let mut entries = Vec::new();
    let mut names = BTreeSet::new();
    for operator in mirror.operators {
        let line = operator.catalog.referenced.line();
        let at_line = |message: &str| ComposeError::Refused(format!("line {line}: {message}"));
        let name = CatalogName::from_str(&entry_name(&operator))
            .map_err(|error| at_line(&error.to_string()))?;
        if !names.insert(name.clone()) {
            let message = format!(
                "two entries have the name {name}: set targetCatalog or targetTag of one of them"
            );
            return Err(at_line(&message));
        }
        let composition = composition(operator);
        composition
            .check()
            .map_err(|error| at_line(&error.to_string()))?;
        entries.push((name, composition));
    }
    Ok(ImageSet { entries, ignored })
}

/// Returns `targetCatalog`, else the last part of the repository, each with the tag if there is
/// one.
fn entry_name(operator: &OperatorFields) -> String {
    let catalog = operator.catalog.value.as_str();
    let (repository, tag) = match layout(catalog) {
        Some(folder) => (folder.to_owned(), None),
        None => {
            let reference = ImageReference::new(catalog);
            (reference.repository, reference.tag)
        }
    };
    let mut name = repository.trim_end_matches('/');
    if let Some((_, last)) = name.rsplit_once('/') {
        name = last;
    }
    let tag = operator.target_tag.as_ref().or(tag.as_ref());
    let name = match (&operator.target_catalog, tag) {
        (Some(target), _) => target.clone(),
        (None, Some(tag)) => format!("{name}-{tag}"),
        (None, None) => name.to_owned(),
    };
    name.to_lowercase().replace(['.', '/', '_', ':'], "-")
}

/// Returns the folder of an OCI layout, which oc-mirror writes as `oci://DIR`.
fn layout(catalog: &str) -> Option<&str> {
    let folder = catalog.strip_prefix("oci:")?;
    Some(folder.strip_prefix("//").unwrap_or(folder))
}

fn composition(operator: OperatorFields) -> Composition {
    let mut input = CompositionInput {
        catalog: None,
        source: None,
        select: Some(Selection {
            full: operator.full,
            packages: operator.packages,
        }),
    };
    let catalog = operator.catalog.value;
    match layout(&catalog) {
        Some(folder) => input.source = Some(format!("oci:{folder}")),
        None => input.catalog = Some(catalog),
    }
    let dependencies = if operator.skip_dependencies {
        DependencyRule::Ignore
    } else {
        DependencyRule::Warn
    };
    Composition {
        inputs: vec![input],
        dependencies,
        ..Composition::default()
    }
}

fn old_format(text: &str) -> ComposeError {
    let mut problem =
        "mirror.openshift.io/v1alpha2 is the format of oc-mirror v1; change these lines:"
            .to_owned();
    for (line, number) in text.lines().zip(1_u64..) {
        let Some((key, _)) = line.trim_start_matches([' ', '-']).split_once(':') else {
            continue;
        };
        if let Some((_, change)) = OLD_FIELDS.iter().find(|(field, _)| *field == key) {
            problem += &format!("\n  line {number}, {key}: {change}");
        }
    }
    ComposeError::Refused(problem)
}
