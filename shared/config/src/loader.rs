use std::{collections::BTreeMap, fmt::Display, fs, path::Path, str::FromStr, time::Duration};

use model::CatalogName;
use publish::Catalog;
use source::{Source, SourceSettings};
use trust::policy::OpenPgpBackend;

use crate::{
    Config, ConfigProblems, ServerConfig, composed,
    file::{MergedFiles, PlacedCatalog, check_files},
    keys::KeyContext,
};

/// Collects a configuration from files, texts and flags, and all of its problems.
///
/// ```
/// use std::time::Duration;
/// use catalog_mirror_config::ConfigLoader;
///
/// let mut loader = ConfigLoader::new(Duration::from_secs(600));
/// loader.text("catalogs.yaml", "catalogs: [{name: a, source: 'quay.io/a/b:v1'}]");
/// assert_eq!(loader.finish()?.catalogs[0].name.as_str(), "a");
///
/// let mut loader = ConfigLoader::new(Duration::from_secs(600));
/// loader.text("catalogs.yaml", "{interval: soon, stor: x}");
/// let problems = loader.finish().unwrap_err().to_string();
/// assert!(problems.contains("catalogs.yaml, interval: ") && problems.contains("unknown field stor"));
/// # Ok::<(), catalog_mirror_config::ConfigProblems>(())
/// ```
pub struct ConfigLoader {
    interval: Duration,
    files: MergedFiles,
    server: ServerConfig,
    problems: ConfigProblems,
    keyrings: Option<&'static dyn OpenPgpBackend>,
}

/// A catalog of the command line: `NAME=SOURCE`.
#[derive(Debug, Clone)]
pub struct NamedSource {
    name: CatalogName,
    source: Source,
}

impl ConfigLoader {
    /// Starts with an empty configuration. `interval` is for catalogs that configure none.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            files: MergedFiles::default(),
            server: ServerConfig::default(),
            problems: ConfigProblems::default(),
            keyrings: None,
        }
    }

    /// Sets the default of `limits.memoryBytes`. For AWS Lambda, where all memory is little. Call it before adding files.
    pub fn memory(&mut self, bytes: usize) {
        self.files.limits.set_memory(bytes);
    }

    /// Adds a file of `catalogs.yaml` documents and `ClusterCatalog` manifests.
    pub fn file(&mut self, path: &Path) {
        let place = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => self.text(&place, &text),
            Err(error) => self.problems.add(place, format!("cannot be read: {error}")),
        }
    }

    /// Adds a text of documents. `place` names it in problems.
    pub fn text(&mut self, place: &str, text: &str) {
        self.files.add_text(text, place, self.interval, &mut self.problems);
    }

    /// Adds a catalog of the command line.
    pub fn named_source(&mut self, named: &NamedSource) {
        let catalog = Catalog {
            interval: Some(self.interval),
            ..Catalog::new(named.name.clone(), named.source.clone())
        };
        let place = "--catalog".to_owned();
        self.files.catalogs.push(PlacedCatalog { place, catalog });
    }

    /// Returns the settings for reading sources, so that more can be added. What is set after the last file wins.
    pub const fn sources(&mut self) -> &mut SourceSettings {
        &mut self.files.sources
    }

    /// Adds a limit `NAME=VALUE` that wins over those of the files.
    pub fn limit(&mut self, text: &str) {
        if let Err(problem) = self.files.limits.add_flag(text) {
            self.problems.add(format!("--limit {text}"), problem);
        }
    }

    /// Adds settings of the HTTP server that win over those of the files.
    pub fn server(&mut self, server: ServerConfig) {
        self.server.extend(server);
    }

    /// Refuses sources and keys that are paths. For AWS Lambda, where a path leads nowhere. Call it before adding files.
    pub fn registries_only(&mut self) {
        self.files.no_files = true;
    }

    /// Adds the file of a private key that signs publications. `place` names it in problems.
    pub fn signing_key(&mut self, place: &str, file: &Path) {
        let (files, file) = (&mut self.files, file.display().to_string());
        files.keys.add_signing(place, &file, files.no_files, &mut self.problems);
    }

    /// Adds the file of a public key that is trusted. `place` names it in problems.
    pub fn verify_key(&mut self, place: &str, file: &Path) {
        let (files, file) = (&mut self.files, file.display().to_string());
        files.keys.add_trusted(place, &file, files.no_files, &mut self.problems);
    }

    /// Sets the parser of OpenPGP keys. Without one a policy that needs them is a problem.
    pub fn openpgp(&mut self, keyrings: &'static dyn OpenPgpBackend) {
        self.keyrings = Some(keyrings);
    }

    /// Adds a problem that the caller found, so that it is reported with the others.
    pub fn problem(&mut self, place: &str, problem: impl Display) {
        self.problems.add(place, problem);
    }

    /// Returns the configuration.
    ///
    /// # Errors
    /// All problems: of the texts, of the files that they name, and of catalogs and webhooks that do not fit together.
    pub fn finish(mut self) -> Result<Config, ConfigProblems> {
        let problems = &mut self.problems;
        if self.files.store.as_deref() == Some("") {
            problems.add("store", "the name of the folder or bucket is empty");
        }
        if self.files.no_files {
            refuse_paths(&self.files.catalogs, problems);
        }
        // Everything below needs the whole configuration: texts may come in any order.
        let mut catalogs = unique(self.files.catalogs, problems);
        composed::connect(&mut catalogs, problems);
        let keys = KeyContext {
            no_files: self.files.no_files,
            keyrings: self.keyrings,
        };
        self.files.signatures.apply(&mut catalogs, keys, problems);
        let event_source = self.files.notify.source.take();
        let webhooks = self
            .files
            .notify
            .finish(&catalogs, &self.files.sources.http.ca_files, problems);
        self.files.server.extend(self.server);
        self.files.server.check(problems);
        let limits = self.files.limits.apply(&mut catalogs);
        check_files(&self.files.sources, problems);
        let images = SourceSettings {
            limits: limits.image.clone(),
            ..self.files.sources
        };
        self.problems.none_or(Config {
            store: self.files.store,
            catalogs,
            images,
            limits,
            webhooks,
            server: self.files.server,
            grpc: self.files.grpc,
            event_source,
            retention: self.files.retention,
            keys: self.files.keys,
        })
    }
}

fn refuse_paths(catalogs: &[PlacedCatalog], problems: &mut ConfigProblems) {
    for PlacedCatalog { place, catalog } in catalogs {
        let sources = catalog.source.pulled_sources();
        for source in sources.filter(|source| matches!(source, Source::OciLayout { .. } | Source::Dir(_))) {
            let problem = format!("the source {source} is a path, not an image in a registry or an archive");
            problems.add(place, problem);
        }
    }
}

fn unique(catalogs: Vec<PlacedCatalog>, problems: &mut ConfigProblems) -> Vec<Catalog> {
    let mut by_name: BTreeMap<CatalogName, PlacedCatalog> = BTreeMap::new();
    for placed in catalogs {
        let name = placed.catalog.name.clone();
        match by_name.get(&name) {
            Some(first) => {
                let problem = format!("the catalog {name} is configured in {} already", first.place);
                problems.add(&placed.place, problem);
            }
            None => {
                by_name.insert(name, placed);
            }
        }
    }
    by_name.into_values().map(|placed| placed.catalog).collect()
}

impl FromStr for NamedSource {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('=');
        let (name, source) = parts.ok_or_else(|| anyhow::anyhow!("write NAME=SOURCE"))?;
        Ok(Self {
            name: name.parse()?,
            source: source.parse()?,
        })
    }
}
