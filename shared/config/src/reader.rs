use std::{fs, path::Path, time::Duration};

use crate::{Config, Pair, Problems, Registries, file, images, unique};

/// Collects what to mirror from files, texts and the command line, with everything that is wrong with it.
#[derive(Debug)]
pub struct Reader {
    interval: Duration,
    merged: file::Merged,
    registries: Registries,
    problems: Problems,
}

impl Reader {
    /// A reader of nothing yet. `interval` is for catalogs that do not say how often they are polled.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            merged: file::Merged::default(),
            registries: Registries::default(),
            problems: Problems::default(),
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

    /// Notes a problem that the caller found, to be reported with the others.
    pub fn problem(&mut self, place: &str, problem: impl std::fmt::Display) {
        self.problems.add(place, problem);
    }

    /// The whole configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn finish(mut self) -> Result<Config, Problems> {
        let catalogs = unique(self.merged.catalogs, &mut self.problems);
        self.merged.registries.extend(self.registries);
        let images = images(self.merged.registries, &mut self.problems);
        self.problems.none_or(Config {
            store: self.merged.store,
            catalogs,
            images,
        })
    }
}
