//! `catalogs.yaml`: its documents, and how those of several files are merged.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use model::{Availability, CatalogName};
use publish::{Catalog, CatalogSource, ValidationMode};
use serde::de::IgnoredAny;
use serde_json::Value;
use source::{PlainHttp, SourceSettings};
use upkeep::Retention;

use crate::{
    ConfigProblems, GrpcConfig, ServerConfig, cluster_catalog, composed,
    keys::{ConfigKeys, SignatureRules, read_keys},
    limits::{self, LimitSettings},
    poll_interval,
    section::{Section, text},
    values::{self, host_and_port, platform},
    webhook::NotifySettings,
};

/// Settings of all files together. Where only one value is possible, the last file wins.
#[derive(Debug, Default)]
pub(crate) struct MergedFiles {
    pub(crate) store: Option<String>,
    pub(crate) sources: SourceSettings,
    pub(crate) limits: LimitSettings,
    pub(crate) catalogs: Vec<PlacedCatalog>,
    pub(crate) notify: NotifySettings,
    pub(crate) retention: Option<Retention>,
    pub(crate) server: ServerConfig,
    pub(crate) grpc: GrpcConfig,
    pub(crate) keys: ConfigKeys,
    /// True if paths are refused, as in a Lambda function.
    pub(crate) no_files: bool,
    pub(crate) signatures: SignatureRules,
}

/// A catalog and the place where it is configured, for problems.
#[derive(Debug)]
pub(crate) struct PlacedCatalog {
    pub(crate) place: String,
    pub(crate) catalog: Catalog,
}

impl MergedFiles {
    /// Adds a text of any number of documents: `catalogs.yaml` and `ClusterCatalog` manifests.
    pub(crate) fn add_text(&mut self, text: &str, place: &str, interval: Duration, problems: &mut ConfigProblems) {
        let documents = match serde_saphyr::from_multiple::<Value>(text) {
            Ok(documents) => documents,
            Err(error) => {
                // The default message speaks to programmers, and names options that users do not have.
                let error = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
                return problems.add(place, format!("is not valid YAML: {error}"));
            }
        };
        for (document, number) in documents.into_iter().zip(1..) {
            let place = match number {
                1 => place.to_owned(),
                _ => format!("{place}, document {number}"),
            };
            if document.get("kind").is_some() || document.get("apiVersion").is_some() {
                cluster_catalog::add(document, &place, self, problems);
            } else if !document.is_null() {
                let section = Section::new(document, place, problems);
                section
                    .into_iter()
                    .for_each(|section| self.add_document(section, interval));
            }
        }
    }

    fn add_document(&mut self, mut document: Section<'_>, default_interval: Duration) {
        let interval = document.parsed("interval", poll_interval).unwrap_or(default_interval);
        self.store = document.field("store").or(self.store.take());
        if let Some(section) = document.section("registries") {
            add_registries(&mut self.sources, section);
        }
        if let Some(section) = document.section("limits") {
            self.limits.add(section);
        }
        if let Some(section) = document.section("notify") {
            self.notify.add(section);
        }
        if let Some(section) = document.section("retention") {
            self.retention = Some(read_retention(section));
        }
        if let Some(section) = document.section("server") {
            self.server.add(section);
        }
        if let Some(section) = document.section("grpc") {
            self.grpc = GrpcConfig::read(section);
        }
        if let Some(section) = document.section("signing") {
            let keys = &mut self.keys;
            read_keys(section, |place, key, problems| {
                keys.add_signing(place, key, self.no_files, problems);
            });
        }
        if let Some(section) = document.section("trust") {
            let keys = &mut self.keys;
            read_keys(section, |place, key, problems| {
                keys.add_trusted(place, key, self.no_files, problems);
            });
        }
        if let Some(rule) = document.value("signature") {
            self.signatures.set_default(rule, document.place_of("signature"));
        }
        document.sections("catalogs", "catalog", |section| self.add_catalog(section, interval));
        document.finish();
    }

    fn add_catalog(&mut self, mut section: Section<'_>, interval: Duration) {
        let place = section.place().to_owned();
        let sources = read_source(&mut section, &place);
        let interval = section.parsed("interval", poll_interval).unwrap_or(interval);
        let availability: Option<Availability> = section.field("availabilityMode");
        let signature = section.value("signature");
        let validation = validation_mode(&mut section);
        let limits = section.section("limits").map(limits::read_own).unwrap_or_default();
        section.finish();
        for (name, source) in sources {
            self.limits.add_own(&name, limits.clone());
            if let Some(rule) = &signature {
                let place = format!("{place}, signature");
                self.signatures.set_own(&name, rule.clone(), place);
            }
            let catalog = Catalog::new(name, source);
            let catalog = Catalog {
                availability: availability.unwrap_or_default(),
                interval: Some(interval),
                // The default depends on the source.
                validation: validation.unwrap_or(catalog.validation),
                ..catalog
            };
            let place = place.clone();
            self.catalogs.push(PlacedCatalog { place, catalog });
        }
    }
}

/// Reads the name and `source` or `compose`. An ImageSetConfiguration gives several catalogs.
fn read_source(section: &mut Section<'_>, place: &str) -> Vec<(CatalogName, CatalogSource)> {
    if let Some(value) = section.value("compose") {
        let name: Option<String> = section.field("name");
        let name = name.and_then(|name| section.problems().ok(place, name.parse()));
        if section.field::<String>("source").is_some() {
            section.problem("a catalog has either source or compose");
        }
        return composed::read(name, value, place, section.problems());
    }
    let name = section.required::<String>("name");
    let source = section.required::<String>("source");
    // Both are parsed even if the other one is wrong: all problems are reported at once.
    let name = name.and_then(|name| section.problems().ok(place, name.parse()));
    let source = source.and_then(|source| section.problems().ok(place, source.parse()));
    name.zip(source).into_iter().collect()
}

/// Reads `retention`. Fields that are absent have the defaults of [`Retention`].
fn read_retention(mut section: Section<'_>) -> Retention {
    let retention = Retention::of(
        section.parsed("generations", values::generations),
        section.parsed("days", values::days),
        section.parsed("grace", values::duration),
    );
    section.finish();
    retention
}

fn validation_mode(section: &mut Section<'_>) -> Option<ValidationMode> {
    let value = section.value("validate")?;
    let place = section.place_of("validate");
    // YAML 1.1 reads `off` as false.
    let text = match &value {
        Value::Bool(false) => "off".to_owned(),
        value => text(value),
    };
    section.problems().ok(place, text.parse())
}

/// Adds `registries` of `catalogs.yaml`. Lists grow; the last platform counts.
fn add_registries(settings: &mut SourceSettings, mut section: Section<'_>) {
    let auth_files: Vec<PathBuf> = section.field("authFiles").unwrap_or_default();
    settings.auth_files.extend(auth_files);
    let header_files: BTreeMap<String, PathBuf> = section.field("headerFiles").unwrap_or_default();
    let place = section.place_of("headerFiles");
    for (host, path) in header_files {
        if let Some(host) = section.problems().ok(&place, host_and_port(&host)) {
            settings.header_files.insert(&host, path);
        }
    }
    let ca_files: Vec<PathBuf> = section.field("caFiles").unwrap_or_default();
    settings.http.ca_files.extend(ca_files);
    if let PlainHttp::Hosts(hosts) = &mut settings.http.plain_http {
        hosts.extend(section.parsed_list("plainHttp", host_and_port));
    }
    let internal_hosts = section.parsed_list("internalHosts", host_and_port);
    settings.http.internal_hosts.extend(internal_hosts);
    if let Some(platform) = section.parsed("platform", platform) {
        settings.platform = platform;
    }
    section.finish();
}

/// Checks that the files can be read, so that a mistake shows before a port is open and not at the first poll.
pub(crate) fn check_files(settings: &SourceSettings, problems: &mut ConfigProblems) {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("cannot be read: {error}"));
    for path in &settings.auth_files {
        let json = read(path).and_then(|bytes| {
            // The parser's message could quote a password.
            let parsed = serde_json::from_slice::<IgnoredAny>(&bytes);
            parsed.map_err(|_| "is not JSON as `podman login --authfile` writes it".to_owned())
        });
        problems.ok(format!("registries, authFiles, {}", path.display()), json);
    }
    for path in settings.header_files.paths() {
        let fields = source::read_header_file(path).map_err(|error| model::text::chain(&error));
        problems.ok("registries, headerFiles", fields);
    }
    for path in &settings.http.ca_files {
        problems.ok(format!("registries, caFiles, {}", path.display()), read(path));
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use publish::ValidationMode;

    use crate::ConfigLoader;

    #[test]
    fn validate_is_read_for_each_catalog() {
        let mode = |field: &str| {
            let mut loader = ConfigLoader::new(Duration::from_secs(600));
            loader.text(
                "f",
                &format!("catalogs: [{{name: a, source: 'quay.io/a/b:v1'{field}}}]"),
            );
            loader.finish().map(|config| config.catalogs[0].validation)
        };
        for (field, expected) in [
            ("", ValidationMode::Warn),
            (", validate: off", ValidationMode::Off),
            (", validate: warn", ValidationMode::Warn),
            (", validate: 'refuse'", ValidationMode::Refuse),
        ] {
            assert_eq!(mode(field).unwrap(), expected, "{field}");
        }
        let problem = mode(", validate: always").unwrap_err().to_string();
        assert!(
            problem.contains("catalog a, validate: \"always\" is not off, warn or refuse"),
            "{problem}"
        );
    }

    fn problems(text: &str) -> String {
        let mut loader = ConfigLoader::new(Duration::from_secs(600));
        loader.text("catalogs.yaml", text);
        loader.finish().unwrap_err().to_string()
    }

    #[test]
    fn document_problems_name_their_fields() {
        let text = "
interval: 30
store: [a]
registries: {plainHttp: ['http://registry.lab:5000'], authFiles: [a, 7]}
catalogs:
- {name: a, source: 'quay.io/a/b:v1', interval: 0s, colour: red}
- {source: 'quay.io/a/b:v1'}
";
        let problems = problems(text);
        for part in [
            "catalogs.yaml, interval: \"30\" is not a duration",
            "catalogs.yaml, store: invalid type",
            "registries, plainHttp: \"http://registry.lab:5000\" is not HOST",
            "registries, authFiles, [1]: ",
            "catalog a, interval: 0s is out of range",
            "catalog a: unknown field colour",
            "catalog number 2: the field name is missing",
        ] {
            assert!(problems.contains(part), "{part} is not in {problems}");
        }
    }

    #[test]
    fn field_without_value_is_refused() {
        for field in [
            "trust",
            "signing",
            "signature",
            "server: {readers",
            "trust: {keys",
            "catalogs",
        ] {
            let close = if field.contains('{') { "}" } else { "" };
            let problems = problems(&format!("{field}: {close}\n"));
            assert!(problems.contains("has no value"), "{field}: {problems}");
        }
    }

    #[test]
    fn duplicate_key_message_names_no_option_of_the_parser() {
        let problems = problems("store: a\nstore: b\n");
        assert!(problems.contains("store") && !problems.contains("Policy"), "{problems}");
    }

    #[test]
    fn retention_out_of_range_is_a_problem() {
        for (retention, part) in [
            (
                "{generations: 17}",
                "retention, generations: 17 is out of range: it must be from 0 to 16",
            ),
            ("{days: 1.5}", "retention, days: \"1.5\" is not a whole number"),
            ("{grace: soon}", "retention, grace: \"soon\" is not a duration"),
            ("{weeks: 3}", "unknown field weeks"),
        ] {
            let mut loader = ConfigLoader::new(Duration::from_secs(600));
            loader.text("file", &format!("retention: {retention}"));
            let problems = loader.finish().unwrap_err().to_string();
            assert!(problems.contains(part), "{part} is not in {problems}");
        }
    }

    #[test]
    fn registries_unusable_files_are_problems() {
        let dir = std::env::temp_dir().join(format!("catalog-mirror-config-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = |name: &str| dir.join(name);
        fs::write(path("good.json"), "{}").unwrap();
        fs::write(path("bad.json"), "{\"auths\": hunter2}").unwrap();
        let mut loader = ConfigLoader::new(Duration::from_secs(600));
        let settings = loader.sources();
        settings.auth_files = vec![path("good.json"), path("bad.json"), path("none.json")];
        settings.http.ca_files = vec![path("none.pem")];
        let problems = loader.finish().unwrap_err().to_string();
        fs::remove_dir_all(&dir).unwrap();
        for part in [
            "bad.json: is not JSON",
            "none.json: cannot be read",
            "caFiles, ",
            "none.pem: cannot be read",
        ] {
            assert!(problems.contains(part), "{part} is not in {problems}");
        }
        assert!(
            !problems.contains("good.json") && !problems.contains("hunter2"),
            "{problems}"
        );
    }
}
