use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use keep::GcSettings;
use layout::Availability;
use poll::Catalog;
use serde::Deserialize;
use serde_json::Value;

use super::{Problems, checked_interval, cluster_catalog, keys, limits, retention, server, signatures, webhook};

/// What all files say together.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) store: Option<String>,
    pub(crate) registries: Registries,
    pub(crate) limits: limits::Merged,
    /// With the place where each is configured.
    pub(crate) catalogs: Vec<(String, Catalog)>,
    pub(crate) notify: webhook::Merged,
    pub(crate) retention: Option<GcSettings>,
    pub(crate) server: server::Server,
    pub(crate) keys: keys::Merged,
    pub(crate) signatures: signatures::Merged,
}

/// `catalogs.yaml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    store: Option<String>,
    #[serde(default)]
    registries: Registries,
    #[serde(default)]
    limits: BTreeMap<String, Value>,
    interval: Option<String>,
    #[serde(default)]
    catalogs: Vec<Value>,
    #[serde(default)]
    notify: webhook::Notify,
    retention: Option<retention::Entry>,
    #[serde(default)]
    server: server::Entry,
    signature: Option<Value>,
    #[serde(default)]
    signing: keys::Places,
    #[serde(default)]
    trust: keys::Places,
}

/// How registries are reached.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Registries {
    /// Files with credentials, as `podman login --authfile` writes them.
    #[serde(default)]
    pub auth_files: Vec<PathBuf>,
    /// Bundles of certificates to trust besides the system's.
    #[serde(default)]
    pub ca_files: Vec<PathBuf>,
    /// Registries that are spoken to without TLS, as `HOST[:PORT]`.
    #[serde(default)]
    pub plain_http: Vec<String>,
    /// Hosts on private or loopback addresses that registries may lead to, as `HOST[:PORT]`.
    #[serde(default)]
    pub internal_hosts: Vec<String>,
    /// Which image of a multi-platform index is read, as `OS/ARCH`.
    pub platform: Option<String>,
}

/// One of its catalogs, not checked yet, so that all its problems can be told.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    name: String,
    source: String,
    interval: Option<String>,
    #[serde(default)]
    availability_mode: Availability,
    signature: Option<Value>,
}

/// Adds one text: documents of `catalogs.yaml` and `ClusterCatalog` manifests.
pub(crate) fn read(text: &str, place: &str, interval: Duration, merged: &mut Merged, problems: &mut Problems) {
    match serde_saphyr::from_multiple::<Value>(text) {
        Err(error) => problems.add(place, format!("is not valid YAML: {error}")),
        Ok(documents) => {
            for (at, document) in documents.into_iter().enumerate() {
                let place = if at == 0 {
                    place.to_owned()
                } else {
                    format!("{place}, document {}", at + 1)
                };
                add(document, &place, interval, merged, problems);
            }
        }
    }
}

fn add(document: Value, place: &str, interval: Duration, merged: &mut Merged, problems: &mut Problems) {
    if document.is_null() {
        return;
    }
    if document.get("kind").is_some() || document.get("apiVersion").is_some() {
        return cluster_catalog::add(document, place, &mut merged.catalogs, problems);
    }
    match serde_json::from_value::<Document>(document) {
        Err(error) => problems.add(place, error),
        Ok(document) => merged.add(document, place, interval, problems),
    }
}

impl Merged {
    fn add(&mut self, document: Document, place: &str, interval: Duration, problems: &mut Problems) {
        let interval =
            duration(document.interval.as_deref(), &format!("{place}, interval"), problems).unwrap_or(interval);
        self.store = document.store.or(self.store.take());
        self.registries.extend(document.registries);
        self.limits.add(&document.limits, place, problems);
        self.notify.add(document.notify, place, problems);
        let retention = document.retention.map(|entry| entry.check(place, problems));
        self.retention = retention.or(self.retention.take());
        self.server.extend(document.server.read(place, problems));
        self.signatures.all(document.signature, place);
        self.keys.signing(document.signing, &format!("{place}, signing"));
        self.keys.trust(document.trust, &format!("{place}, trust"));
        for (at, entry) in document.catalogs.into_iter().enumerate() {
            let place = entry_place(place, at, &entry);
            match serde_json::from_value::<Entry>(entry) {
                Err(error) => problems.add(place, error),
                Ok(entry) => {
                    let signature = entry.signature.clone();
                    let catalog = entry.check(&place, interval, problems);
                    self.signatures.one(catalog.as_ref(), signature, &place);
                    self.catalogs.extend(catalog.map(|catalog| (place, catalog)));
                }
            }
        }
    }
}

fn entry_place(place: &str, at: usize, entry: &Value) -> String {
    match entry.get("name").and_then(Value::as_str) {
        Some(name) => format!("{place}, catalog {name}"),
        None => format!("{place}, catalog number {}", at + 1),
    }
}

impl Entry {
    fn check(self, place: &str, interval: Duration, problems: &mut Problems) -> Option<Catalog> {
        let name = self.name.parse().map_err(|error| problems.add(place, error)).ok();
        let source = self.source.parse().map_err(|error| problems.add(place, error)).ok();
        let own = duration(self.interval.as_deref(), place, problems);
        Some(Catalog {
            name: name?,
            source: source?,
            availability: self.availability_mode,
            interval: Some(own.unwrap_or(interval)),
            policy: None,
            lookaside: None,
        })
    }
}

fn duration(text: Option<&str>, place: &str, problems: &mut Problems) -> Option<Duration> {
    let text = text?;
    let parsed =
        humantime::parse_duration(text).map_err(|error| format!("{text:?} is no duration such as 10m: {error}"));
    parsed
        .and_then(checked_interval)
        .map_err(|problem| problems.add(place, problem))
        .ok()
}

impl Registries {
    /// Adds what another one says; it wins where there can be only one.
    pub(crate) fn extend(&mut self, other: Self) {
        self.auth_files.extend(other.auth_files);
        self.ca_files.extend(other.ca_files);
        self.plain_http.extend(other.plain_http);
        self.internal_hosts.extend(other.internal_hosts);
        self.platform = other.platform.or(self.platform.take());
    }
}
