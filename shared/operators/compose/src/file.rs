//! Files that describe compositions.

use std::{collections::BTreeSet, str::FromStr};

use model::{CatalogName, ImageReference, text::yaml_error};
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
        let names: Vec<String> = self
            .entries
            .iter()
            .map(|(name, _)| name.to_string())
            .collect();
        let fits = |entry: &CatalogName| name.is_none_or(|name| name == entry.as_str());
        let mut found = self.entries.into_iter().filter(|(entry, _)| fits(entry));
        if let (Some(entry), None) = (found.next(), found.next()) {
            return Ok(entry);
        }
        if names.is_empty() {
            return Err(ComposeError::Refused(
                "mirror.operators has no entry".to_owned(),
            ));
        }
        let entries = name.map_or_else(
            || "several entries".to_owned(),
            |name| format!("no entry {name}"),
        );
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
        let (line, column) = (location.line(), location.column());
        let message = message.trim_end_matches(&format!(" at line {line}, column {column}"));
        ComposeError::Refused(format!("line {line}: {}", yaml_error(message)))
    })
}

fn image_set(text: &str) -> Result<ImageSet, ComposeError> {
    let file: ImageSetFields = read(text)?;
    let mirror = file.mirror;
    let has = |field: fn(&OperatorFields) -> bool| mirror.operators.iter().any(field);
    let ignored = [
        ("platform", mirror.platform.is_some()),
        ("additionalImages", mirror.additional_images.is_some()),
        ("helm", mirror.helm.is_some()),
        ("blockedImages", mirror.blocked_images.is_some()),
        ("samples", mirror.samples.is_some()),
        ("archiveSize", file.archive_size.is_some()),
        (
            "targetCatalogSourceTemplate",
            has(|entry| entry.target_catalog_source_template.is_some()),
        ),
        ("platforms", has(|entry| entry.platforms.is_some())),
    ];
    let ignored = ignored.into_iter().filter(|(_, is_there)| *is_there);
    let ignored = ignored.map(|(name, _)| name).collect();
    let (mut entries, mut names) = (Vec::new(), BTreeSet::new());
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
        let checked = composition.check();
        checked.map_err(|error| at_line(&error.to_string()))?;
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
    let last = repository
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let name = match (
        &operator.target_catalog,
        operator.target_tag.as_ref().or(tag.as_ref()),
    ) {
        (Some(target), _) => target.clone(),
        (None, Some(tag)) => format!("{last}-{tag}"),
        (None, None) => last.to_owned(),
    };
    name.to_lowercase().replace(['.', '/', '_', ':'], "-")
}

/// Returns the folder of an OCI layout, which oc-mirror writes as `oci://DIR`.
fn layout(catalog: &str) -> Option<&str> {
    let folder = catalog.strip_prefix("oci:")?;
    Some(folder.strip_prefix("//").unwrap_or(folder))
}

fn composition(operator: OperatorFields) -> Composition {
    let catalog = operator.catalog.value;
    let source = layout(&catalog).map(|folder| format!("oci:{folder}"));
    let input = CompositionInput {
        catalog: source.is_none().then_some(catalog),
        source,
        select: Some(Selection {
            full: operator.full,
            packages: operator.packages,
        }),
    };
    Composition {
        inputs: vec![input],
        dependencies: if operator.skip_dependencies {
            DependencyRule::Ignore
        } else {
            DependencyRule::Warn
        },
        ..Composition::default()
    }
}

fn old_format(text: &str) -> ComposeError {
    let lines = text.lines().zip(1_u64..).filter_map(|(line, number)| {
        let (key, _) = line.trim_start_matches([' ', '-']).split_once(':')?;
        let (_, change) = OLD_FIELDS.iter().find(|(field, _)| *field == key)?;
        Some(format!("\n  line {number}, {key}: {change}"))
    });
    ComposeError::Refused(format!(
        "mirror.openshift.io/v1alpha2 is the format of oc-mirror v1; change these lines:{}",
        lines.collect::<String>()
    ))
}
