use std::{fs, path::Path};

use trust::{PublicKey, Signer, SigningKey, Trust};

use super::{ConfigProblems, section::Section};

/// First characters of a PEM text in the configuration itself (RFC 7468, section 2). Other texts are paths.
const PEM: &str = "-----BEGIN";

/// Keys for publications: of their signatures, and of those that are trusted.
#[derive(Debug, Clone, Default)]
pub struct ConfigKeys {
    /// Private keys. Each of them signs every publication.
    pub signing: Vec<SigningKey>,
    /// Public keys that are trusted in addition to those of [`Self::signing`].
    pub trusted: Vec<PublicKey>,
}

impl ConfigKeys {
    /// Returns the signer of publications, or `None` without a private key.
    pub fn signer(&self) -> Option<Signer> {
        let is_some = !self.signing.is_empty();
        is_some.then(|| Signer::new(self.signing.clone(), self.trusted.clone()))
    }

    /// Returns the keys of which one must have signed a publication, or `None` if signatures are not checked.
    ///
    /// A mirror that signs trusts its own signatures.
    pub fn trust(&self) -> Option<Trust> {
        let own = self.signing.iter().map(SigningKey::public);
        let is_some = !self.trusted.is_empty();
        is_some.then(|| Trust::new(self.trusted.iter().cloned().chain(own).collect()))
    }
}

/// Keys as they are configured, not read yet: paths and PEM texts.
#[derive(Debug, Default)]
pub(crate) struct KeyPlaces {
    signing: Vec<KeyPlace>,
    trusted: Vec<KeyPlace>,
}

/// One configured key and the place where it is configured, for problems.
#[derive(Debug)]
struct KeyPlace {
    place: String,
    key: String,
}

impl KeyPlaces {
    /// Adds the private keys of `signing` in `catalogs.yaml`.
    pub(crate) fn add_signing(&mut self, section: Section<'_>) {
        self.signing.extend(read_keys(section));
    }

    /// Adds the public keys of `trust` in `catalogs.yaml`.
    pub(crate) fn add_trusted(&mut self, section: Section<'_>) {
        self.trusted.extend(read_keys(section));
    }

    pub(crate) fn add_signing_file(&mut self, place: &str, file: &Path) {
        self.signing.push(key_place(place, &file.display()));
    }

    pub(crate) fn add_trusted_file(&mut self, place: &str, file: &Path) {
        self.trusted.push(key_place(place, &file.display()));
    }

    /// Reads all keys. With `no_files` paths are refused, and so are private keys: a configuration is no secret.
    pub(crate) fn read(self, no_files: bool, problems: &mut ConfigProblems) -> ConfigKeys {
        let mut keys = ConfigKeys::default();
        for KeyPlace { place, key } in self.signing {
            keys.signing.extend(problems.ok(place, signing_key(&key, no_files)));
        }
        for KeyPlace { place, key } in self.trusted {
            keys.trusted
                .extend(problems.ok(place, public_keys(&key, no_files)).unwrap_or_default());
        }
        keys
    }
}

fn read_keys(mut section: Section<'_>) -> Vec<KeyPlace> {
    let place = section.place().to_owned();
    let keys: Option<Vec<String>> = section.required("keys");
    // An empty list would turn off signing or verification. It comes from a template without a value more likely than
    // from a decision, which is to remove the section.
    if keys.as_ref().is_some_and(Vec::is_empty) {
        section.problem("keys is empty: name a key or remove the section");
    }
    section.finish();
    let keys = keys.unwrap_or_default().into_iter();
    keys.map(|key| key_place(&place, &key)).collect()
}

fn key_place(place: &str, key: &impl ToString) -> KeyPlace {
    KeyPlace {
        place: place.to_owned(),
        key: key.to_string(),
    }
}

fn signing_key(text: &str, no_files: bool) -> Result<SigningKey, String> {
    if text.starts_with(PEM) {
        return Err("a private key must not be part of the configuration: name its file".to_owned());
    }
    if no_files {
        return Err("signing keys are not read from files here".to_owned());
    }
    SigningKey::from_pem(&read(text)?).map_err(|error| format!("{text}: {error}"))
}

/// Returns the keys of a file or of a PEM text.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::catalogs::ConfigLoader;

    /// The verification of signatures must not end because a variable of a template is empty.
    #[test]
    fn keys_empty_list_is_refused() {
        for text in [
            "trust: {keys: []}",
            "signing: {keys: []}",
            "trust: {}",
            "trust: {keys: ['']}",
            "signature: {cosign: {keys: []}}\ncatalogs: [{name: a, source: 'quay.io/a/b:v1'}]",
        ] {
            let mut loader = ConfigLoader::new(Duration::from_secs(600));
            loader.text("file", text);
            let problems = loader.finish().unwrap_err().to_string();
            assert!(
                problems.contains("trust") || problems.contains("keys"),
                "{text}: {problems}"
            );
        }
    }
}
