use std::{fs, path::Path, time::Duration};

use image::Source;
use policy::Keyrings;

use crate::{Config, Pair, Problems, Registries, Server, Webhook, file, images, keys, signatures, unique};

/// Collects what to mirror from files, texts and the command line, with everything that is wrong with it.
pub struct Reader {
    interval: Duration,
    merged: file::Merged,
    registries: Registries,
    server: Server,
    registries_only: bool,
    problems: Problems,
    keyrings: Option<&'static dyn Keyrings>,
}

impl Reader {
    /// A reader of nothing yet. `interval` is for catalogs that do not say how often they are polled.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            merged: file::Merged::default(),
            registries: Registries::default(),
            server: Server::default(),
            registries_only: false,
            problems: Problems::default(),
            keyrings: None,
        }
    }

    /// Adds a file.
    pub fn file(&mut self, path: &Path) {
        let place = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => self.text(&place, &text),
            Err(error) => self.problems.add(place, format!("cannot be read: {error}")),
        }
    }

    /// Adds the documents of a text. `place` names it in problems.
    pub fn text(&mut self, place: &str, text: &str) {
        file::read(text, place, self.interval, &mut self.merged, &mut self.problems);
    }

    /// Adds a catalog of the command line.
    pub fn pair(&mut self, pair: &Pair) {
        let catalog = pair.catalog(self.interval);
        self.merged.catalogs.push(("--catalog".to_owned(), catalog));
    }

    /// Adds how registries are reached; it wins over what the texts say.
    pub fn registries(&mut self, registries: Registries) {
        self.registries.extend(registries);
    }

    /// Adds how the mirror is served; it wins over what the texts say.
    pub fn server(&mut self, server: Server) {
        self.server.extend(server);
    }

    /// The webhooks so far, for callers who can tell whether their URLs and secrets can be used.
    pub fn webhooks(&self) -> &[Webhook] {
        &self.merged.notify.webhooks
    }

    /// Takes only images of registries for sources, on machines where a path means nothing.
    pub fn registries_only(&mut self) {
        self.registries_only = true;
    }

    /// Adds the file of a private key that signs what is published. `place` names it in problems.
    pub fn signing_key(&mut self, place: &str, file: &Path) {
        let places = keys::Places::file(file);
        self.merged.keys.signing(places, place);
    }

    /// Adds the file of a public key that is trusted. `place` names it in problems.
    pub fn verify_key(&mut self, place: &str, file: &Path) {
        let places = keys::Places::file(file);
        self.merged.keys.trust(places, place);
    }

    /// Understands OpenPGP keys in policies, where the program does.
    pub fn openpgp(&mut self, keyrings: &'static dyn Keyrings) {
        self.keyrings = Some(keyrings);
    }

    /// Notes a problem that the caller found, to be reported with the others.
    pub fn problem(&mut self, place: &str, problem: impl std::fmt::Display) {
        self.problems.add(place, problem);
    }

    /// The whole configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn finish(mut self) -> Result<Config, Problems> {
        if self.registries_only {
            self.refuse_paths();
        }
        let mut catalogs = unique(self.merged.catalogs, &mut self.problems);
        let ground = signatures::Ground {
            no_files: self.registries_only,
            keyrings: self.keyrings,
        };
        self.merged.signatures.apply(&mut catalogs, ground, &mut self.problems);
        self.merged.notify.check(&catalogs, &mut self.problems);
        self.merged.registries.extend(self.registries);
        self.merged.server.extend(self.server);
        self.merged.server.check(&mut self.problems);
        let keys = self.merged.keys.read(self.registries_only, &mut self.problems);
        let limits = self.merged.limits.finish();
        let images = images(self.merged.registries, limits.image.clone(), &mut self.problems);
        self.problems.none_or(Config {
            store: self.merged.store,
            catalogs,
            images,
            limits,
            webhooks: self.merged.notify.webhooks,
            server: self.merged.server,
            event_source: self.merged.notify.source,
            retention: self.merged.retention,
            keys,
        })
    }

    fn refuse_paths(&mut self) {
        for (place, catalog) in &self.merged.catalogs {
            if !matches!(catalog.source, Source::Registry { .. }) {
                let problem = format!("the source {} is not an image in a registry", catalog.source);
                self.problems.add(place, problem);
            }
        }
    }
}
