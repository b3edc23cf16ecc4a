use std::time::Duration;

use image::Source;
use layout::Availability;
use poll::Catalog;
use serde::Deserialize;
use serde_json::Value;

use super::Problems;

const API_VERSION: &str = "olm.operatorframework.io/v1";

/// A `ClusterCatalog` as `kubectl get -o yaml` prints it: what a cluster adds (`status`, more `metadata`) is passed over.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClusterCatalog {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    source: CatalogSource,
    #[serde(default)]
    availability_mode: Availability,
    /// It orders catalogs inside a cluster and means nothing to a mirror.
    #[expect(dead_code, reason = "named so that it is not refused as unknown")]
    priority: Option<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogSource {
    #[serde(rename = "type")]
    kind: String,
    image: Option<Image>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Image {
    #[serde(rename = "ref")]
    reference: String,
    poll_interval_minutes: Option<u64>,
}

/// Adds a manifest, or all items of a `List` of them.
pub(crate) fn add(manifest: Value, place: &str, catalogs: &mut Vec<(String, Catalog)>, problems: &mut Problems) {
    let field = |name: &str| {
        manifest
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (version, kind) = (field("apiVersion"), field("kind"));
    if kind == "List" || kind == "ClusterCatalogList" {
        let items = manifest
            .get("items")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        return items.into_iter().for_each(|item| add(item, place, catalogs, problems));
    }
    if (version.as_str(), kind.as_str()) != (API_VERSION, "ClusterCatalog") {
        return problems.add(
            place,
            format!("{kind:?} of {version:?} is not a ClusterCatalog of {API_VERSION:?}"),
        );
    }
    match serde_json::from_value::<ClusterCatalog>(manifest) {
        Err(error) => problems.add(place, format!("ClusterCatalog: {error}")),
        Ok(manifest) => {
            let place = format!("{place}, ClusterCatalog {}", manifest.metadata.name);
            let catalog = manifest.check(&place, problems);
            catalogs.extend(catalog.map(|catalog| (place, catalog)));
        }
    }
}

impl ClusterCatalog {
    fn check(self, place: &str, problems: &mut Problems) -> Option<Catalog> {
        let source = &self.spec.source;
        if source.kind != "Image" {
            problems.add(place, format!("spec.source.type must be Image, not {:?}", source.kind));
        }
        let Some(image) = &source.image else {
            problems.add(place, "spec.source.image is missing");
            return None;
        };
        let name = self
            .metadata
            .name
            .parse()
            .map_err(|error| problems.add(place, error))
            .ok();
        let source = image.check(place, problems);
        let interval = image
            .poll_interval_minutes
            .map(|minutes| Duration::from_secs(minutes.saturating_mul(60)));
        Some(Catalog {
            name: name?,
            source: source?,
            availability: self.spec.availability_mode,
            interval,
            policy: None,
            lookaside: None,
        })
    }
}

impl Image {
    /// The rules that the CRD has the API server check.
    fn check(&self, place: &str, problems: &mut Problems) -> Option<Source> {
        let source: Option<Source> = self.reference.parse().map_err(|error| problems.add(place, error)).ok();
        if self.poll_interval_minutes == Some(0) {
            problems.add(place, "spec.source.image.pollIntervalMinutes must be at least 1");
        }
        if self.poll_interval_minutes.is_some() && source.as_ref().is_some_and(|source| source.pinned().is_some()) {
            problems.add(
                place,
                "spec.source.image.pollIntervalMinutes may not be set with a digest: it never changes",
            );
        }
        source
    }
}
