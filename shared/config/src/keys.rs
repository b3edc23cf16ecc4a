use std::{fs, path::Path};

use seal::{PublicKey, Signer, SigningKey, Trust};
use serde::Deserialize;

use super::Problems;

/// How a PEM text starts that stands in the configuration itself (RFC 7468, section 2).
const PEM: &str = "-----BEGIN";

/// The keys for what is published.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    /// Those that sign it.
    pub signing: Vec<SigningKey>,
    /// Those that are trusted besides.
    pub trusted: Vec<PublicKey>,
}

impl Keys {
    /// Who signs, if anybody does.
    pub fn signer(&self) -> Option<Signer> {
        let is_some = !self.signing.is_empty();
        is_some.then(|| Signer::new(self.signing.clone(), self.trusted.clone()))
    }

    /// Who is trusted, if signatures are asked for: what signs here is trusted too then.
    pub fn trust(&self) -> Option<Trust> {
        let own = self.signing.iter().map(SigningKey::public);
        let is_some = !self.trusted.is_empty();
        is_some.then(|| Trust::new(self.trusted.iter().cloned().chain(own).collect()))
    }
}

/// `signing` and `trust` of `catalogs.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Places {
    /// Files, or PEM texts.
    #[serde(default)]
    keys: Vec<String>,
}

/// What all documents say together, each with the place where it is configured.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    signing: Vec<(String, String)>,
    trusted: Vec<(String, String)>,
}

impl Places {
    pub(crate) fn file(path: &Path) -> Self {
        Self {
            keys: vec![path.display().to_string()],
        }
    }

    fn at(self, place: &str) -> impl Iterator<Item = (String, String)> {
        self.keys.into_iter().map(|key| (place.to_owned(), key))
    }
}

impl Merged {
    pub(crate) fn signing(&mut self, places: Places, place: &str) {
        self.signing.extend(places.at(place));
    }

    pub(crate) fn trust(&mut self, places: Places, place: &str) {
        self.trusted.extend(places.at(place));
    }

    /// Reads them. Where paths mean nothing there is no place for private keys either: a configuration is no secret.
    pub(crate) fn read(self, no_files: bool, problems: &mut Problems) -> Keys {
        let mut keys = Keys::default();
        for (place, text) in self.signing {
            match signing_key(&text, no_files) {
                Ok(key) => keys.signing.push(key),
                Err(problem) => problems.add(place, problem),
            }
        }
        for (place, text) in self.trusted {
            match public_keys(&text, no_files) {
                Ok(found) => keys.trusted.extend(found),
                Err(problem) => problems.add(place, problem),
            }
        }
        keys
    }
}

fn signing_key(text: &str, no_files: bool) -> Result<SigningKey, String> {
    if text.starts_with(PEM) {
        return Err("a private key does not belong into the configuration: name its file".to_owned());
    }
    if no_files {
        return Err("signing keys are not taken from files here".to_owned());
    }
    SigningKey::from_pem(&read(text)?).map_err(|error| format!("{text}: {error}"))
}

/// The keys of a file or of a PEM text.
pub(crate) fn public_keys(text: &str, no_files: bool) -> Result<Vec<PublicKey>, String> {
    if text.starts_with(PEM) {
        return PublicKey::from_pem(text.as_bytes()).map_err(|error| error.to_string());
    }
    if no_files {
        return Err(format!("{text:?} is not a PEM text, and files are not read here"));
    }
    PublicKey::from_pem(&read(text)?).map_err(|error| format!("{text}: {error}"))
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{path} cannot be read: {error}"))
}
