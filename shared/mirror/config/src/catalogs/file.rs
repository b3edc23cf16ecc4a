use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{Availability, CatalogName};
use publish::{Catalog, CatalogSource, ValidationMode};
use serde::de::IgnoredAny;
use serde_json::Value;
use source::{Source, SourceSettings};
use upkeep::Retention;

use super::keys::PlacedRule;
use super::limits::{self, OwnLimits};
use super::section::Section;
use super::values::{self, host_and_port, platform};
use super::{ConfigLoader, cluster_catalog, composed, poll_interval, webhook};
use crate::problems::Problems;

/// A catalog and the place where it is configured, for problems.
pub(crate) struct PlacedCatalog {
    pub(crate) place: String,
    pub(crate) catalog: Catalog,
    /// Limits that the catalog sets itself, which win over those of all.
    pub(crate) limits: OwnLimits,
    /// Rule for its signatures.
    pub(crate) signature: Option<PlacedRule>,
}

impl PlacedCatalog {
    /// Returns a catalog without limits and rules of its own.
    pub(crate) fn new(place: &str, catalog: Catalog) -> Self {
        Self {
            place: place.to_owned(),
            catalog,
            limits: OwnLimits::new(),
            signature: None,
        }
    }
}

impl ConfigLoader {
    /// Adds a text of any number of documents: `catalogs.yaml` and `ClusterCatalog` manifests.
    /// `place` names it in problems.
    pub fn text(&mut self, place: &str, text: &str) {
        let documents = match serde_saphyr::from_multiple::<Value>(text) {
            Ok(documents) => documents,
            Err(error) => {
                // The default message speaks to programmers, and names options that users do not
                // have.
                let error = error.without_snippet();
                let error = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
                return self
                    .problems
                    .add(place, format!("is not valid YAML: {error}"));
            }
        };
        for (document, number) in documents.into_iter().zip(1..) {
            let place = match number {
                1 => place.to_owned(),
                _ => format!("{place}, document {number}"),
            };
            if document.get("kind").is_some() || document.get("apiVersion").is_some() {
                cluster_catalog::add(document, &place, self);
            } else if !document.is_null()
                && let Some(section) = Section::new(document, place, &self.problems)
            {
                self.add_document(section);
            }
        }
    }

    fn add_document(&mut self, mut document: Section) {
        let interval = document
            .parsed("interval", poll_interval)
            .unwrap_or(self.interval);
        self.config.store = document.field("store").or(self.config.store.take());
        document.with("registries", |section| {
            add_registries(&mut self.config.images, section)
        });
        document.with("limits", |section| {
            for (_, set, to) in limits::read(section) {
                set(&mut self.config.limits, to);
            }
        });
        document.with("notify", |section| webhook::add(section, self));
        let retention = document.with("retention", read_retention);
        self.config.retention = retention.or(self.config.retention.take());
        document.with("server", |section| self.config.server.add(section));
        document.with("grpc", |section| {
            self.config.grpc.anonymous = section.field("anonymous");
            self.config.grpc.tls = section.field("tls").unwrap_or_default();
        });
        document.with("signing", |section| {
            self.add_keys(section, Self::signing_key)
        });
        document.with("trust", |section| self.add_keys(section, Self::verify_key));
        self.signature = PlacedRule::read(&mut document).or(self.signature.take());
        for section in document.sections("catalogs", "catalog") {
            self.add_catalog(section, interval);
        }
        document.finish();
    }

    /// Adds the keys of `signing` or `trust`.
    fn add_keys(&mut self, section: &mut Section, add: fn(&mut Self, &str, &str)) {
        let keys: Option<Vec<String>> = section.require("keys").field("keys");
        // An empty list would turn off signing or verification. It comes from a template without a
        // value more likely than from a decision, which is to remove the section.
        if keys.as_ref().is_some_and(Vec::is_empty) {
            section.problem("keys is empty: name a key or remove the section");
        }
        for key in keys.unwrap_or_default() {
            add(self, &section.place, &key);
        }
    }

    fn add_catalog(&mut self, mut section: Section, interval: Duration) {
        let sources = read_source(&mut section);
        let interval = section
            .parsed("interval", poll_interval)
            .unwrap_or(interval);
        let availability: Option<Availability> = section.field("availabilityMode");
        let signature = PlacedRule::read(&mut section);
        let validation = section.parsed("validate", |text| match text {
            // YAML 1.1 reads `off` as false.
            "false" => Ok(ValidationMode::Off),
            _ => text.parse(),
        });
        let limits = section.with("limits", limits::read_own).unwrap_or_default();
        for (name, source) in sources {
            let mut catalog = Catalog::new(name, source);
            catalog.availability = availability.unwrap_or_default();
            catalog.interval = Some(interval);
            // The default depends on the source.
            catalog.validation = validation.unwrap_or(catalog.validation);
            self.catalogs.push(PlacedCatalog {
                place: section.place.clone(),
                catalog,
                limits: limits.clone(),
                signature: signature.clone(),
            });
        }
        section.finish();
    }
}

/// Reads the name and `source` or `compose`. An ImageSetConfiguration gives several catalogs.
fn read_source(section: &mut Section) -> Vec<(CatalogName, CatalogSource)> {
    if let Some(value) = section.value("compose") {
        let name = section.parsed("name", str::parse);
        if section.value("source").is_some() {
            section.problem("a catalog has either source or compose");
        }
        return composed::read(name, value, section);
    }
    // Both are parsed even if the other one is wrong: all problems are reported at once.
    let name = section.require("name").parsed("name", str::parse);
    let source = section
        .require("source")
        .parsed("source", str::parse::<Source>);
    name.zip(source.map(CatalogSource::from))
        .into_iter()
        .collect()
}

/// Reads `retention`. Fields that are absent have the defaults of [`Retention`].
fn read_retention(section: &mut Section) -> Retention {
    Retention::default().with(
        section.parsed("generations", values::generations),
        section.parsed("days", values::days),
        section.parsed("grace", values::duration),
    )
}

/// Adds `registries` of `catalogs.yaml`. Lists grow; the last platform counts.
fn add_registries(settings: &mut SourceSettings, section: &mut Section) {
    let auth_files = section.field::<Vec<PathBuf>>("authFiles");
    settings.auth_files.extend(auth_files.unwrap_or_default());
    let header_files: BTreeMap<String, PathBuf> = section.field("headerFiles").unwrap_or_default();
    let place = section.place_of("headerFiles");
    for (host, path) in header_files {
        if let Some(host) = section.problems.ok(&place, host_and_port(&host)) {
            settings.header_files.insert(&host, path);
        }
    }
    let ca_files: Vec<PathBuf> = section.field("caFiles").unwrap_or_default();
    settings.http.ca_files.extend(ca_files);
    let http = &mut settings.http;
    http.plain_http
        .extend(section.parsed_list("plainHttp", host_and_port));
    http.internal_hosts
        .extend(section.parsed_list("internalHosts", host_and_port));
    if let Some(platform) = section.parsed("platform", platform) {
        settings.platform = platform;
    }
}

/// Checks that the files can be read, so that a mistake shows before a port is open and not at the
/// first poll.
pub(crate) fn check_files(settings: &SourceSettings, problems: &Problems) {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("cannot be read: {error}"));
    for path in &settings.auth_files {
        let json = read(path).and_then(|bytes| {
            // The parser's message could quote a password.
            let parsed = serde_json::from_slice::<IgnoredAny>(&bytes);
            parsed.map_err(|_| "is not JSON as `podman login --authfile` writes it".to_owned())
        });
        problems.ok(
            format!("registries, authFiles (--auth-file), {}", path.display()),
            json,
        );
    }
    for path in settings.header_files.paths() {
        let fields = source::read_header_file(path).map_err(|error| model::text::chain(&error));
        problems.ok("registries, headerFiles", fields);
    }
    for path in &settings.http.ca_files {
        let place = format!("registries, caFiles (--ca-file), {}", path.display());
        problems.ok(place, read(path));
    }
}

#[cfg(test)]
mod tests {
    use publish::ValidationMode;

    use super::super::tests::{check_problems, load};

    /// YAML 1.1 takes `off` for a boolean.
    #[test]
    fn validate_off_is_read_as_a_text() {
        let config = load("catalogs: [{name: a, source: 'quay.io/a/b:v1', validate: off}]");
        assert_eq!(config.unwrap().catalogs[0].validation, ValidationMode::Off);
    }

    fn problems(text: &str) -> String {
        load(text).unwrap_err().to_string()
    }

    #[test]
    fn document_problems_name_their_fields() {
        let text = "
interval: 30
store: [a]
registries: {plainHttp: ['http://registry.lab:5000'], authFiles: [a, 7], platform: linux}
catalogs:
- {name: a, source: 'quay.io/a/b:v1', interval: 0s, colour: red}
- {name: a, source: quay.io/a/b}
- {source: 'quay.io/a/b:v1'}
- {name: b, source: 'quay.io/a/b:v1'}
- {name: b, source: 'quay.io/a/b:v2'}
";
        let problems = problems(text);
        for part in [
            "catalogs.yaml, interval: \"30\" is not a duration",
            "catalogs.yaml, store: write a text, not a list",
            "registries, plainHttp: \"http://registry.lab:5000\" is not HOST",
            "registries, authFiles, [1]: ",
            "registries, platform: \"linux\" is not OS/ARCH",
            "catalog a, source: `quay.io/a/b` has neither tag nor digest",
            "catalog b: the catalog b is configured in catalogs.yaml, catalog b already",
            "catalog a, interval: 0s is out of range",
            "catalog a: unknown field colour",
            "catalog number 3: the field name is missing",
        ] {
            assert!(problems.contains(part), "{part} is not in {problems}");
        }
    }

    const WRONG: &str = r#"
{trust: } => has no value
{signing: } => has no value
{signature: } => has no value
{server: {readers: }} => has no value
{trust: {keys: }} => has no value
{catalogs: } => has no value
{store: ''} => store: has no value
{notify: {source: ''}} => notify, source: has no value
{notify: {webhooks: [{name: '', url: 'https://a.example', secretEnv: PATH}]}} => name: has no value
{apiVersion: v1, kind: List} => the List has no items
{apiVersion: v1, kind: ConfigMap} => ConfigMap
retention: {generations: 17} => retention, generations: 17 is out of range: it must be from 0 to 16
retention: {days: 1.5} => retention, days: "1.5" is not a whole number
retention: {grace: soon} => retention, grace: "soon" is not a duration
retention: {weeks: 3} => unknown field weeks
catalogs: [{name: a, source: 'x/a/a:v1', validate: always}] => catalog a, validate: "always" is not off, warn or refuse
catalogs: [{name: a, source: 'x/a/a:v1', limits: {depth: x}}] => catalog a, limits, depth:
catalogs: [{name: a, source: 'x/a/a:v1', limits: {memoryBytes: 1GiB}}] => catalog a, limits, memoryBytes: is shared
"#;

    #[test]
    fn wrong_value_is_a_problem_of_its_field() {
        check_problems(WRONG, str::to_owned);
    }

    #[test]
    fn duplicate_key_message_names_no_option_of_the_parser() {
        let problems = problems("store: a\nstore: b\n");
        assert!(
            problems.contains("store") && !problems.contains("Policy"),
            "{problems}"
        );
    }
}
