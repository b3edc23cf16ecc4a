use std::{collections::BTreeMap, error::Error, fs, path::Path, time::Duration};

use model::CatalogName;
use publish::Catalog;
use source::Source;
use trust::policy::KeyringReader;

use super::file::{PlacedCatalog, check_files};
use super::keys::{KeyContext, PlacedRule};
use super::webhook::{self, PlacedWebhook};
use super::{Config, composed, limits};
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

    /// Refuses sources and keys that are paths. For AWS Lambda, where a path leads nowhere. Call it
    /// before adding files.
    pub const fn registries_only(&mut self) {
        self.key_context.no_files = true;
    }

    /// Adds a private key that signs publications, by its path. `place` names it in problems.
    pub fn signing_key(&mut self, place: &str, key: &str) {
        let key = self.key_context.signing_key(key);
        self.config
            .keys
            .signing
            .extend(self.problems.ok(place, key));
    }

    /// Adds public keys that are trusted, by a path or as a PEM text. `place` names them in
    /// problems.
    pub fn verify_key(&mut self, place: &str, key: &str) {
        let keys = self.key_context.public_keys(key);
        let keys = self.problems.ok(place, keys);
        self.config.keys.trusted.extend(keys.into_iter().flatten());
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
        let (problems, mut config) = (&self.problems, self.config);
        if self.key_context.no_files {
            refuse_paths(&self.catalogs, problems);
        }
        // Everything below needs the whole configuration: texts may come in any order.
        let mut catalogs = unique(self.catalogs, problems);
        composed::connect(&mut catalogs, problems);
        for placed in &mut catalogs {
            // The rule of a catalog replaces the rule for all, also where it is weaker.
            if let Some(rule) = placed.signature.as_ref().or(self.signature.as_ref()) {
                rule.apply(&mut placed.catalog, self.key_context, problems);
            }
            // Where a catalog has limits of its own, all others are those of all catalogs.
            for (_, set, to) in &placed.limits {
                set(
                    placed
                        .catalog
                        .limits
                        .get_or_insert_with(|| config.limits.clone()),
                    *to,
                );
            }
        }
        config.catalogs = catalogs.into_iter().map(|placed| placed.catalog).collect();
        config.receivers = webhook::receivers(self.webhooks, &config, problems);
        config.server.check(problems);
        check_files(&config.images, problems);
        config.images.limits = config.limits.image.clone();
        problems.none_or(config)
    }
}

fn refuse_paths(catalogs: &[PlacedCatalog], problems: &Problems) {
    for PlacedCatalog { place, catalog, .. } in catalogs {
        for pulled in catalog.source.pulled_sources() {
            let source = &pulled.source;
            if source.local_path().is_some() {
                let problem = format!(
                    "the source {source} is a path, not an image in a registry or an archive"
                );
                problems.add(place, problem);
            }
        }
    }
}

/// Returns the catalogs in the order of their names.
fn unique(catalogs: Vec<PlacedCatalog>, problems: &Problems) -> Vec<PlacedCatalog> {
    let mut by_name: BTreeMap<CatalogName, PlacedCatalog> = BTreeMap::new();
    for placed in catalogs {
        let name = placed.catalog.name.clone();
        if let Some(first) = by_name.get(&name) {
            let problem = format!(
                "the catalog {name} is configured in {} already",
                first.place
            );
            problems.add(&placed.place, problem);
        } else {
            by_name.insert(name, placed);
        }
    }
    by_name.into_values().collect()
}

/// Parses a catalog of the command line, `NAME=SOURCE`.
///
/// # Errors
/// A text of another form, and a name or a source that cannot be one.
pub fn named_catalog(text: &str) -> Result<Catalog, Box<dyn Error + Send + Sync>> {
    let (name, source) = text.split_once('=').ok_or("write NAME=SOURCE")?;
    Ok(Catalog::new(name.parse()?, Source::of_argument(source)?))
}
