//! `ClusterCatalog` manifests, as `kubectl get -o yaml` prints them.

use std::{collections::BTreeMap, time::Duration};

use model::Availability;
use publish::{Catalog, ValidationMode};
use serde::Deserialize;
use serde_json::Value;
use source::Source;

use crate::{
    ConfigProblems,
    file::{MergedFiles, PlacedCatalog},
    limits::{self, OwnLimits},
    section::{Section, deserialize},
    values::check_poll_interval,
};

const API_VERSION: &str = "olm.operatorframework.io/v1";

/// Prefix of the annotations that are for this program.
const ANNOTATION_PREFIX: &str = "catalog-mirror/";
/// Limits of the catalog, as the mapping that `limits` is in `catalogs.yaml`.
const LIMITS_ANNOTATION: &str = "catalog-mirror/limits";
/// Treatment of content that violates the rules of OLM: `off`, `warn` or `refuse`, as `validate` in `catalogs.yaml`.
const VALIDATE_ANNOTATION: &str = "catalog-mirror/validate";

/// A manifest. Fields that a cluster adds (`status`, more `metadata`) are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    source: SpecSource,
    #[serde(default)]
    availability_mode: Availability,
    #[expect(
        dead_code,
        reason = "known, so that it is not refused; a mirror has no use for the order of catalogs"
    )]
    priority: Option<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecSource {
    #[serde(rename = "type")]
    kind: String,
    image: Option<ImageSource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ImageSource {
    #[serde(rename = "ref")]
    reference: String,
    poll_interval_minutes: Option<u64>,
}

/// Adds a manifest, or all items of a `List` of manifests.
pub(crate) fn add(manifest: Value, place: &str, files: &mut MergedFiles, problems: &mut ConfigProblems) {
    let field = |name: &str| manifest.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (field("apiVersion"), field("kind"));
    if kind == "List" || kind == "ClusterCatalogList" {
        let Some(items) = manifest.get("items").and_then(Value::as_array) else {
            return problems.add(place, format!("the {kind} has no items"));
        };
        return items.iter().for_each(|item| add(item.clone(), place, files, problems));
    }
    if (version, kind) != (API_VERSION, "ClusterCatalog") {
        let problem = format!("{kind:?} of {version:?} is not a ClusterCatalog of {API_VERSION:?}");
        return problems.add(place, problem);
    }
    let name = manifest
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let place = format!("{place}, ClusterCatalog {name}");
    let manifest: Option<Manifest> = deserialize(manifest, &place, problems);
    let Some(manifest) = manifest else {
        return;
    };
    manifest.metadata.check_names(&place, problems);
    let limits = manifest.metadata.limits(&place, problems);
    if let Some(catalog) = manifest.check(&place, problems) {
        files.limits.add_own(&catalog.name, limits);
        files.catalogs.push(PlacedCatalog { place, catalog });
    }
}

impl Metadata {
    /// Refuses unknown annotations that are for this program, since most are misspelt.
    fn check_names(&self, place: &str, problems: &mut ConfigProblems) {
        let names = self.annotations.keys();
        let own = names.filter(|name| name.starts_with(ANNOTATION_PREFIX));
        for name in own.filter(|name| ![LIMITS_ANNOTATION, VALIDATE_ANNOTATION].contains(&name.as_str())) {
            problems.add(
                format!("{place}, metadata.annotations"),
                format!("unknown annotation {name}, known are {LIMITS_ANNOTATION} and {VALIDATE_ANNOTATION}"),
            );
        }
    }

    fn validation(&self, place: &str, problems: &mut ConfigProblems) -> Option<ValidationMode> {
        let text = self.annotations.get(VALIDATE_ANNOTATION)?;
        let place = format!("{place}, metadata.annotations, {VALIDATE_ANNOTATION}");
        problems.ok(place, text.parse())
    }

    fn limits(&self, place: &str, problems: &mut ConfigProblems) -> OwnLimits {
        let Some(text) = self.annotations.get(LIMITS_ANNOTATION) else {
            return OwnLimits::default();
        };
        let place = format!("{place}, metadata.annotations, {LIMITS_ANNOTATION}");
        let value = serde_saphyr::from_str(text).map_err(|_| "is not a mapping such as {documents: 50000}");
        let section = problems
            .ok(&place, value)
            .and_then(|value| Section::new(value, place, problems));
        section.map(limits::read_own).unwrap_or_default()
    }
}

impl Manifest {
    fn check(self, place: &str, problems: &mut ConfigProblems) -> Option<Catalog> {
        let source = &self.spec.source;
        if source.kind != "Image" {
            problems.add(place, format!("spec.source.type must be Image, not {:?}", source.kind));
        }
        let Some(image) = &source.image else {
            problems.add(place, "spec.source.image is missing");
            return None;
        };
        let name = problems.ok(place, self.metadata.name.parse());
        let source = image.check(place, problems);
        let validation = self.metadata.validation(place, problems);
        let minutes = image.poll_interval_minutes;
        let interval = minutes.map(|minutes| Duration::from_secs(minutes.saturating_mul(60)));
        let catalog = Catalog::new(name?, source?);
        Some(Catalog {
            availability: self.spec.availability_mode,
            interval,
            validation: validation.unwrap_or(catalog.validation),
            ..catalog
        })
    }
}

impl ImageSource {
    // The rules are those that the API server checks from the CRD.
    fn check(&self, place: &str, problems: &mut ConfigProblems) -> Option<Source> {
        let reference = format!("{place}, spec.source.image.ref");
        let source: Option<Source> = problems.ok(&reference, self.reference.parse());
        let is_path = source
            .as_ref()
            .is_some_and(|source| !matches!(source, Source::Registry { .. }));
        if is_path {
            problems.add(reference, format!("{:?} is not an image in a registry", self.reference));
        }
        let interval = format!("{place}, spec.source.image.pollIntervalMinutes");
        match self.poll_interval_minutes {
            None => {}
            Some(0) => problems.add(&interval, "must be at least 1"),
            Some(minutes) => {
                let checked = check_poll_interval(Duration::from_secs(minutes.saturating_mul(60)));
                problems.ok(&interval, checked);
            }
        }
        let is_pinned = source.as_ref().is_some_and(|source| source.pinned().is_some());
        if self.poll_interval_minutes.is_some() && is_pinned {
            problems.add(interval, "must not be set together with a digest, which never changes");
        }
        source
    }
}

#[cfg(test)]
mod tests {
    use publish::ValidationMode;

    use crate::ConfigLoader;

    #[test]
    fn cluster_catalog_has_its_validation_as_an_annotation() {
        let mode = |annotation: &str| {
            let mut loader = ConfigLoader::new(std::time::Duration::from_secs(600));
            let text = format!(
                "{{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {{name: a, annotations: \
                 {{{annotation}}}}}, spec: {{source: {{type: Image, image: {{ref: 'quay.io/a/b:v1'}}}}}}}}"
            );
            loader.text("file", &text);
            loader.finish().map(|config| config.catalogs[0].validation)
        };
        assert_eq!(mode("").unwrap(), ValidationMode::Warn);
        assert_eq!(mode("catalog-mirror/validate: refuse").unwrap(), ValidationMode::Refuse);
        let problem = mode("catalog-mirror/validate: maybe").unwrap_err().to_string();
        assert!(
            problem.contains("catalog-mirror/validate: \"maybe\" is not off"),
            "{problem}"
        );
    }

    #[test]
    fn cluster_catalog_that_a_cluster_would_refuse_is_a_problem() {
        let manifest = |image: &str| {
            format!(
                "{{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {{name: a}}, \
                 spec: {{source: {{type: Image, image: {image}}}}}}}"
            )
        };
        for (text, part) in [
            (
                manifest("{ref: 'dir:/etc'}"),
                "spec.source.image.ref: \"dir:/etc\" is not an image",
            ),
            (
                manifest("{ref: 7}"),
                "ClusterCatalog a, spec.source.image.ref: invalid type",
            ),
            (
                manifest("{ref: 'quay.io/a/b:v1', pollIntervalMinutes: 0}"),
                "at least 1",
            ),
            (
                manifest("{ref: 'quay.io/a/b:v1', pollIntervalMinutes: 9000000}"),
                "out of range",
            ),
            ("{apiVersion: v1, kind: List}".to_owned(), "the List has no items"),
            ("{apiVersion: v1, kind: ConfigMap}".to_owned(), "ConfigMap"),
        ] {
            let mut loader = ConfigLoader::new(std::time::Duration::from_secs(600));
            loader.text("file", &text);
            let problems = loader.finish().unwrap_err().to_string();
            assert!(problems.contains(part), "{part} is not in {problems}");
        }
    }
}
