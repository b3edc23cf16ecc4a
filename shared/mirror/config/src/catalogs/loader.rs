use std::{error::Error, fs, path::Path, time::Duration};

use publish::Catalog;
use source::{RegistriesConf, Source};
use trust::policy::KeyringReader;

use super::file::{add_registries, check_files, parse_documents, read_catalogs, read_retention};
use super::hold::{self, OwnHold};
use super::keys::{KeyContext, PlacedRule};
use super::placed::{PlacedCatalog, refuse_paths, unique};
use super::section::Section;
use super::webhook::{self, PlacedWebhook};
use super::{Config, cluster_catalog, composed, limits, poll_interval, ring};
use crate::Variables;
use crate::problems::{ConfigProblems, Problems};

/// Collects a configuration from files, texts and flags, and all of its problems.
///
/// ```
/// use std::time::Duration;
/// use config::ConfigLoader;
///
/// let mut loader = ConfigLoader::new(Duration::from_secs(600));
/// loader.text("catalogs.yaml", "catalogs: [{name: a, source: 'quay.io/a/b:v1'}]");
/// assert_eq!(loader.finish()?.catalogs[0].name.as_str(), "a");
///
/// let mut loader = ConfigLoader::new(Duration::from_secs(600));
/// loader.text("catalogs.yaml", "{interval: soon, stor: x}");
/// let problems = loader.finish().unwrap_err().to_string();
/// assert!(problems.contains("catalogs.yaml, interval: ") && problems.contains("unknown field stor"));
/// # Ok::<(), config::ConfigProblems>(())
/// ```
#[derive(Default)]
pub struct ConfigLoader {
    /// Interval of catalogs that configure none.
    pub(crate) interval: Duration,
    /// Everything but catalogs and receivers, which are checked against each other in the end. Set
    /// [`Config::limits`] before adding files, and lists afterwards.
    pub config: Config,
    pub(crate) catalogs: Vec<PlacedCatalog>,
    pub(crate) webhooks: Vec<PlacedWebhook>,
    /// Rule for the signatures of catalogs that have no rule of their own.
    pub(crate) signature: Option<PlacedRule>,
    /// Rules that hold content back, of catalogs that have none of their own.
    pub(crate) hold: OwnHold,
    pub(crate) problems: Problems,
    key_context: KeyContext,
}

// What is added last wins where only one value is possible.
impl ConfigLoader {
    /// Starts with an empty configuration. `interval` is for catalogs that configure none.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            ..Self::default()
        }
    }

    /// Adds a file of `catalogs.yaml` documents and `ClusterCatalog` manifests.
    pub fn file(&mut self, path: &Path) {
        let place = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => self.text(&place, &text),
            Err(error) => self.problems.add(place, format!("cannot be read: {error}")),
        }
    }

    /// Adds a text of any number of documents: `catalogs.yaml` and `ClusterCatalog` manifests.
    /// `place` names it in problems.
    pub fn text(&mut self, place: &str, text: &str) {
        let Some(documents) = self.problems.ok(place, parse_documents(text)) else {
            return;
        };
        for (document, number) in documents.into_iter().zip(1..) {
            let place = match number {
                1 => place.to_owned(),
                _ => format!("{place}, document {number}"),
            };
            if document.get("kind").is_some() || document.get("apiVersion").is_some() {
                let catalogs = cluster_catalog::read_all(document, &place, &self.problems);
                self.catalogs.extend(catalogs);
            } else if !document.is_null()
                && let Some(section) = Section::new(document, place, &self.problems)
            {
                self.add_document(section);
            }
        }
    }

    fn add_document(&mut self, mut document: Section) {
        let interval = document.parsed("interval", poll_interval);
        let interval = interval.unwrap_or(self.interval);
        if let Some(store) = document.field("store") {
            self.config.store = Some(store);
        }
        document.with("registries", |section| {
            add_registries(&mut self.config.images, section);
        });
        document.with("limits", |section| {
            for limit in limits::read(section) {
                limit.apply(&mut self.config.limits);
            }
        });
        document.with("notify", |section| {
            if let Some(source) = section.field("source") {
                self.config.events.source = source;
            }
            self.webhooks.extend(webhook::read_all(section));
        });
        if let Some(retention) = document.with("retention", read_retention) {
            self.config.retention = Some(retention);
        }
        document.with("server", |section| self.config.server.add(section));
        document.with("grpc", |section| {
            self.config.grpc.anonymous = section.field("anonymous");
            self.config.grpc.tls = section.field("tls").unwrap_or_default();
        });
        document.with("signing", |section| {
            self.add_keys(section, Self::signing_key);
        });
        document.with("trust", |section| self.add_keys(section, Self::verify_key));
        if let Some(rule) = PlacedRule::read(&mut document) {
            self.signature = Some(rule);
        }
        let hold = OwnHold::read(&mut document);
        self.hold.replace(hold);
        for section in document.sections("catalogs", "catalog") {
            self.catalogs.extend(read_catalogs(section, interval));
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

    /// Adds a catalog of the command line.
    pub fn named_catalog(&mut self, mut catalog: Catalog) {
        catalog.interval = Some(self.interval);
        self.catalogs.push(PlacedCatalog::new("--catalog", catalog));
    }

    /// Adds a limit `NAME=VALUE`.
    pub fn limit(&mut self, text: &str) {
        let set = limits::set(&mut self.config.limits, text);
        self.problems.ok(format!("--limit {text}"), set);
    }

    /// Adds the rules of `registries.conf` for pulls.
    pub fn registry_rules(&mut self, files: &RegistriesConf) {
        let rules = files.read().map_err(|error| model::text::chain(&error));
        if let Some(rules) = self.problems.ok("registries.conf", rules) {
            self.config.images.rules.set(rules);
        }
    }

    /// Refuses sources and keys that are paths. For AWS Lambda, where a path leads nowhere. Call it
    /// before adding files.
    pub const fn registries_only(&mut self) {
        self.key_context.no_files = true;
    }

    /// Adds a private key that signs publications, by its path. `place` names it in problems.
    pub fn signing_key(&mut self, place: &str, key: &str) {
        let key = self.key_context.signing_key(key);
        if let Some(key) = self.problems.ok(place, key) {
            self.config.keys.signing.push(key);
        }
    }

    /// Adds public keys that are trusted, by a path or as a PEM text. `place` names them in
    /// problems.
    pub fn verify_key(&mut self, place: &str, key: &str) {
        let keys = self.key_context.public_keys(key);
        if let Some(keys) = self.problems.ok(place, keys) {
            self.config.keys.trusted.extend(keys);
        }
    }

    /// Sets the parser of OpenPGP keys. Without one a policy that needs them is a problem.
    pub fn openpgp(&mut self, keyrings: KeyringReader) {
        self.key_context.keyrings = Some(keyrings);
    }

    /// Returns a reader of environment variables, whose problems are reported with the others.
    pub fn variables<G: Fn(&str) -> Option<String>>(&self, get: G) -> Variables<G> {
        let problems = self.problems.clone();
        Variables { get, problems }
    }

    /// Returns the configuration.
    ///
    /// # Errors
    /// All problems: of the texts, of the files that they name, and of catalogs and webhooks that
    /// do not fit together.
    pub fn finish(self) -> Result<Config, ConfigProblems> {
        let problems = &self.problems;
        let mut config = self.config;
        if self.key_context.no_files {
            refuse_paths(&self.catalogs, problems);
        }
        // Everything below needs the whole configuration: texts may come in any order.
        let mut catalogs = unique(self.catalogs, problems);
        composed::connect(&mut catalogs, problems);
        ring::check(&catalogs, problems);
        for placed in &mut catalogs {
            // The rule of a catalog replaces the rule for all, also where it is weaker.
            if let Some(rule) = placed.signature.as_ref().or(self.signature.as_ref()) {
                rule.apply(&mut placed.catalog, self.key_context, problems);
            }
            let no_files = self.key_context.no_files;
            for hold in [&self.hold, &placed.hold] {
                hold.apply(&mut placed.catalog.hold, no_files, problems);
            }
            hold::check(&placed.catalog.hold, &placed.place, problems);
            // Where a catalog has limits of its own, all others are those of all catalogs.
            if !placed.limits.is_empty() {
                let mut limits = config.limits.clone();
                for limit in &placed.limits {
                    limit.apply(&mut limits);
                }
                placed.catalog.limits = Some(limits);
            }
        }
        config.catalogs = catalogs.into_iter().map(|placed| placed.catalog).collect();
        let ca_files = &config.images.http.ca_files;
        config.receivers = webhook::receivers(self.webhooks, &config.catalogs, ca_files, problems);
        config.server.check(problems);
        check_files(&config.images, problems);
        config.images.limits = config.limits.image.clone();
        problems.none_or(config)
    }
}

/// Parses a catalog of the command line, `NAME=SOURCE`.
///
/// # Errors
/// A text of another form, and a name or a source that cannot be one.
pub fn named_catalog(text: &str) -> Result<Catalog, Box<dyn Error + Send + Sync>> {
    let (name, source) = text.split_once('=').ok_or("write NAME=SOURCE")?;
    Ok(Catalog::new(name.parse()?, Source::of_argument(source)?))
}
