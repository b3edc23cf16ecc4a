//! `ClusterCatalog` manifests, as `kubectl get -o yaml` prints them.

use std::time::Duration;

use model::CatalogName;
use publish::{Catalog, ValidationMode};
use serde_json::Value;
use source::{Source, SourceError};

use super::hold::{OwnHold, hold_time, rules_of_text};
use super::limits::{self, OwnLimit};
use super::placed::PlacedCatalog;
use super::section::Section;
use super::values;
use crate::problems::{Problems, count};

const API_VERSION: &str = "olm.operatorframework.io/v1";

/// Longest time between two polls, a year, as in `catalogs.yaml`.
const POLL_MINUTES_MAX: u64 = 365 * 24 * 60;

/// Prefix of the annotations that are for this program.
const ANNOTATION_PREFIX: &str = "catalog-mirror/";
/// Limits of the catalog, as the mapping that `limits` is in `catalogs.yaml`.
const LIMITS_ANNOTATION: &str = "catalog-mirror/limits";
/// Treatment of content that violates the rules of OLM: `off`, `warn` or `refuse`, as `validate` in
/// `catalogs.yaml`.
const VALIDATE_ANNOTATION: &str = "catalog-mirror/validate";

/// Rules that hold content back, separated by commas, as `hold` in `catalogs.yaml`.
const HOLD_ANNOTATION: &str = "catalog-mirror/hold";
/// Time for which content is held back, as `holdFor` in `catalogs.yaml`.
const HOLD_FOR_ANNOTATION: &str = "catalog-mirror/hold-for";

/// Settings in the annotations of a manifest.
#[derive(Default)]
struct OwnSettings {
    validation: Option<ValidationMode>,
    limits: Vec<OwnLimit>,
    hold: OwnHold,
}

/// Reads a manifest, or all items of a `List` of manifests.
pub(crate) fn read_all(manifest: Value, place: &str, problems: &Problems) -> Vec<PlacedCatalog> {
    let kind = text_of(&manifest, "/kind");
    if kind != "List" && kind != "ClusterCatalogList" {
        return read_one(manifest, place, problems).into_iter().collect();
    }
    let Some(items) = manifest.get("items").and_then(Value::as_array) else {
        problems.add(place, format!("the {kind} has no items"));
        return Vec::new();
    };
    let mut catalogs = Vec::new();
    for item in items {
        catalogs.extend(read_all(item.clone(), place, problems));
    }
    catalogs
}

fn read_one(mut manifest: Value, place: &str, problems: &Problems) -> Option<PlacedCatalog> {
    let version = text_of(&manifest, "/apiVersion");
    let kind = text_of(&manifest, "/kind");
    if version != API_VERSION || kind != "ClusterCatalog" {
        let problem = format!(
            "kind {kind:?} of apiVersion {version:?} is not read here: write a ClusterCatalog of {API_VERSION}, or a file with \
             `catalogs` and without a kind"
        );
        problems.add(place, problem);
        return None;
    }
    let name = text_of(&manifest, "/metadata/name");
    let place = format!("{place}, ClusterCatalog {name}");
    remove_nulls(&mut manifest);
    read(Section::new(manifest, place, problems)?)
}

/// Returns the text at a pointer (RFC 6901); empty if there is none.
fn text_of<'a>(manifest: &'a Value, pointer: &str) -> &'a str {
    let value = manifest.pointer(pointer).and_then(Value::as_str);
    value.unwrap_or_default()
}

/// Removes fields without a value, which the API server takes for absent.
fn remove_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(remove_nulls);
    }
}

/// Reads a manifest. Fields that a cluster adds (`status`, more `metadata`) are ignored.
fn read(mut manifest: Section) -> Option<PlacedCatalog> {
    let mut metadata = manifest.require("metadata").section("metadata")?;
    let name: Option<CatalogName> = metadata.require("name").parsed("name", str::parse);
    let annotations = metadata.section("annotations");
    let own = annotations.map(read_annotations).unwrap_or_default();
    let mut spec = manifest.require("spec").section("spec")?;
    let availability = spec.parsed("availabilityMode", values::availability);
    // Known, so that it is not refused; a mirror has no use for the order of catalogs.
    let _: Option<i32> = spec.field("priority");
    let source = spec.require("source").section("source");
    spec.finish();
    let (source, interval) = read_source(source?)?;
    let mut catalog = Catalog::new(name?, source);
    catalog.availability = availability.unwrap_or_default();
    catalog.interval = interval;
    catalog.validation = own.validation.unwrap_or(catalog.validation);
    let mut placed = PlacedCatalog::new(&manifest.place, catalog);
    placed.limits = own.limits;
    placed.hold = own.hold;
    Some(placed)
}

/// Reads the annotations for this program. Those that are unknown are refused, since most are
/// misspelt.
fn read_annotations(mut annotations: Section) -> OwnSettings {
    let validation = annotations.parsed(VALIDATE_ANNOTATION, str::parse);
    let mut hold = OwnHold::default();
    hold.rules = annotations.parsed(HOLD_ANNOTATION, rules_of_text);
    hold.time = annotations.parsed(HOLD_FOR_ANNOTATION, hold_time);
    let value: Option<Value> = annotations.parsed(LIMITS_ANNOTATION, |text| {
        serde_saphyr::from_str(text).map_err(|_| "is not a mapping such as {documents: 50000}")
    });
    let place = annotations.place_of(LIMITS_ANNOTATION);
    let section = value.and_then(|value| Section::new(value, place, &annotations.problems));
    for name in annotations.rest().keys() {
        if name.starts_with(ANNOTATION_PREFIX) {
            annotations.problem(format!(
                "unknown annotation {name}, known are {HOLD_ANNOTATION}, {HOLD_FOR_ANNOTATION}, {LIMITS_ANNOTATION} and \
                 {VALIDATE_ANNOTATION}"
            ));
        }
    }
    let limits = section.map(|mut section| limits::read_own(&mut section));
    OwnSettings {
        validation,
        limits: limits.unwrap_or_default(),
        hold,
    }
}

/// Reads `spec.source`: an image, and the time between two polls. The rules are those that the API
/// server checks from the CRD.
fn read_source(mut source: Section) -> Option<(Source, Option<Duration>)> {
    let kind: Option<String> = source.require("type").field("type");
    if let Some(kind) = kind
        && kind != "Image"
    {
        source.problem(format!("type must be Image, not {kind:?}"));
    }
    let section = source.require("image").section("image");
    source.finish();
    let mut image = section?;
    let reference = image.require("ref").parsed("ref", registry_image);
    let minutes = image.parsed("pollIntervalMinutes", |text| {
        count(text, 1..=POLL_MINUTES_MAX)
    });
    let source = reference.as_ref();
    let is_pinned = source.is_some_and(|source| source.pinned().is_some());
    if minutes.is_some() && is_pinned {
        let place = image.place_of("pollIntervalMinutes");
        let problem = "must not be set together with a digest, which never changes";
        image.problems.add(place, problem);
    }
    image.finish();
    Some((reference?, minutes.map(Duration::from_mins)))
}

fn registry_image(text: &str) -> Result<Source, String> {
    match text.parse() {
        Ok(source @ Source::Registry { .. }) => Ok(source),
        Ok(_) => Err(format!("{text:?} is not an image in a registry")),
        Err(error) => Err(SourceError::to_string(&error)),
    }
}

#[cfg(test)]
mod tests {
    use publish::ValidationMode;

    use super::super::tests::{check_problems, load};

    fn manifest(metadata: &str, image: &str) -> String {
        format!(
            "{{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {{name: a, {metadata}}}, \
             spec: {{source: {{type: Image, image: {{{image}}}}}}}}}"
        )
    }

    fn annotated(annotation: &str) -> String {
        manifest(
            &format!("annotations: {{{annotation}}}"),
            "ref: 'quay.io/a/b:v1'",
        )
    }

    #[test]
    fn cluster_catalog_has_its_validation_as_an_annotation() {
        for (annotation, expected) in [
            ("", ValidationMode::Warn),
            ("catalog-mirror/validate: refuse", ValidationMode::Refuse),
        ] {
            assert_eq!(
                load(&annotated(annotation)).unwrap().catalogs[0].validation,
                expected
            );
        }
    }

    const WRONG_ANNOTATIONS: &str = r#"
catalog-mirror/validate: maybe => catalog-mirror/validate: "maybe" is not off
catalog-mirror/limits: '{dept: 1}' => catalog-mirror/limits, dept: there is no such limit
catalog-mirror/limits: '{dept: ' => catalog-mirror/limits: is not a mapping
catalog-mirror/limits: '7' => catalog-mirror/limits: 7 is not a mapping
catalog-mirror/limit: '{}' => unknown annotation catalog-mirror/limit,
"#;

    const WRONG_IMAGES: &str = r#"
ref: 'dir:/etc' => spec, source, image, ref: "dir:/etc" is not an image
ref: 7 => ClusterCatalog a, spec, source, image, ref: `7` names no registry
ref: 'quay.io/a/b:v1', pollIntervalMinutes: 0 => image, pollIntervalMinutes: 0 is out of range
ref: 'quay.io/a/b:v1', pollIntervalMinutes: 9000000 => out of range
ref: 'quay.io/a/b@sha256:DIGEST', pollIntervalMinutes: 5 => pollIntervalMinutes: must not be set together with a digest
"#;

    #[test]
    fn cluster_catalog_that_a_cluster_would_refuse_is_a_problem() {
        check_problems(WRONG_ANNOTATIONS, annotated);
        check_problems(WRONG_IMAGES, |image| {
            manifest("", &image.replace("DIGEST", &"0".repeat(64)))
        });
    }
}
