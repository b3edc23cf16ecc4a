use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::CatalogName;
use publish::{Catalog, CatalogSource, ValidationMode};
use serde::de::IgnoredAny;
use serde_json::Value;
use source::{Source, SourceSettings};
use upkeep::Retention;

use super::hold::OwnHold;
use super::keys::PlacedRule;
use super::placed::PlacedCatalog;
use super::section::Section;
use super::values::{self, host_and_port, platform, poll_interval};
use super::{composed, limits, ring};
use crate::problems::Problems;

/// Splits a text into its YAML documents.
pub(crate) fn parse_documents(text: &str) -> Result<Vec<Value>, String> {
    serde_saphyr::from_multiple(text).map_err(|error| {
        let error = error.without_snippet();
        // The default message speaks to programmers, and names options that users do not have.
        let message = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
        format!("is not valid YAML: {message}")
    })
}

/// Reads an element of `catalogs`, which is one catalog or the entries of an ImageSetConfiguration.
/// `interval` is for those that set none.
pub(crate) fn read_catalogs(mut section: Section, interval: Duration) -> Vec<PlacedCatalog> {
    let sources = read_source(&mut section);
    let own_interval = section.parsed("interval", poll_interval);
    let availability = section.parsed("availabilityMode", values::availability);
    let signature = PlacedRule::read(&mut section);
    let validation = section.parsed("validate", |text| match text {
        // YAML 1.1 reads `off` as false.
        "false" => Ok(ValidationMode::Off),
        _ => text.parse(),
    });
    let hold = OwnHold::read(&mut section);
    let limits = section.with("limits", limits::read_own).unwrap_or_default();
    let mut catalogs = Vec::new();
    for (name, source) in sources {
        let mut catalog = Catalog::new(name, source);
        catalog.availability = availability.unwrap_or_default();
        catalog.interval = Some(own_interval.unwrap_or(interval));
        // The default depends on the source.
        if let Some(validation) = validation {
            catalog.validation = validation;
        }
        catalogs.push(PlacedCatalog {
            place: section.place.clone(),
            catalog,
            limits: limits.clone(),
            signature: signature.clone(),
            hold: hold.clone(),
        });
    }
    section.finish();
    catalogs
}

/// Reads the name and `source`, `compose` or `ring`. An ImageSetConfiguration gives several catalogs.
fn read_source(section: &mut Section) -> Vec<(CatalogName, CatalogSource)> {
    let kinds = ["source", "compose", "ring"].into_iter();
    if kinds.filter(|kind| section.has(kind)).count() > 1 {
        section.problem("a catalog has one of source, compose and ring");
    }
    let is_ring = section.has("ring");
    let ring = section.with("ring", ring::read).flatten();
    if is_ring {
        let name = section.require("name").parsed("name", str::parse);
        section.drop_fields(&["source", "compose"]);
        return match (name, ring) {
            (Some(name), Some(ring)) => {
                ring::refuse_fields(section, &ring.of);
                vec![(name, CatalogSource::Ring(Box::new(ring)))]
            }
            _ => Vec::new(),
        };
    }
    if let Some(value) = section.value("compose") {
        let name = section.parsed("name", str::parse);
        section.drop_fields(&["source"]);
        return composed::read(name, value, section);
    }
    // Both are parsed even if the other one is wrong: all problems are reported at once.
    let name = section.require("name").parsed("name", str::parse);
    let source = section
        .require("source")
        .parsed("source", str::parse::<Source>);
    match (name, source) {
        (Some(name), Some(source)) => vec![(name, source.into())],
        _ => Vec::new(),
    }
}

/// Reads `retention`. Fields that are absent have the defaults of [`Retention`].
pub(crate) fn read_retention(section: &mut Section) -> Retention {
    Retention::default().with(
        section.parsed("generations", values::generations),
        section.parsed("days", values::days),
        section.parsed("grace", values::duration),
    )
}

/// Adds `registries` of `catalogs.yaml`. Lists grow; the last platform counts.
pub(crate) fn add_registries(settings: &mut SourceSettings, section: &mut Section) {
    let auth_files: Vec<PathBuf> = section.field("authFiles").unwrap_or_default();
    settings.auth_files.extend(auth_files);
    let header_files: BTreeMap<String, PathBuf> = section.field("headerFiles").unwrap_or_default();
    let place = section.place_of("headerFiles");
    for (host, path) in header_files {
        if let Some(host) = section.problems.ok(&place, host_and_port(&host)) {
            settings.header_files.insert(&host, path);
        }
    }
    let http = &mut settings.http;
    let ca_files: Vec<PathBuf> = section.field("caFiles").unwrap_or_default();
    http.ca_files.extend(ca_files);
    let plain_http = section.parsed_list("plainHttp", host_and_port);
    http.plain_http.extend(plain_http);
    let internal_hosts = section.parsed_list("internalHosts", host_and_port);
    http.internal_hosts.extend(internal_hosts);
    if let Some(platform) = section.parsed("platform", platform) {
        settings.platform = platform;
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot be read: {error}"))
}

/// Checks that the files can be read, so that a mistake shows before a port is open and not at the
/// first poll.
pub(crate) fn check_files(settings: &SourceSettings, problems: &Problems) {
    for path in &settings.auth_files {
        let place = format!("registries, authFiles (--auth-file), {}", path.display());
        let json = read(path).and_then(|bytes| {
            // The parser's message could quote a password.
            let parsed = serde_json::from_slice::<IgnoredAny>(&bytes);
            parsed.map_err(|_| "is not JSON as `podman login --authfile` writes it".to_owned())
        });
        problems.ok(place, json);
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
catalogs: [{name: a, source: 'x/a/a:v1', availabilityMode: Off}] => catalog a, availabilityMode: write Available or Unavailable, not false
catalogs: [{name: a, source: 'x/a/a:v1', availabilityMode: available}] => write Available or Unavailable, not "available"
catalogs: [{name: a, source: 'x/a/a:v1', interval: five minutes}] => "five minutes" is not a duration: write a number and a unit, such as 30s
notify: {webhooks: [{name: a, url: nope, secretEnv: PATH}]} => webhook a: url: write http:// or https:// with a host, such as https://chat.example/hook
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
