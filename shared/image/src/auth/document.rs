//! One `auth.json` or `config.json`, from a file or from memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use crate::auth::places::Place;
use crate::auth::{CredentialsError, Secret};

/// What docker writes for Docker Hub, whatever host serves it.
const DOCKER_HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

pub(crate) struct AuthDocument {
    /// What errors call it.
    origin: String,
    content: Content,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Content {
    auths: Option<BTreeMap<String, Entry>>,
    cred_helpers: Option<BTreeMap<String, String>>,
    creds_store: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

/// What a file says about a repository.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Secret(Secret),
    /// Ask this helper about this server.
    Helper {
        helper: String,
        server: String,
    },
}

impl AuthDocument {
    pub(crate) fn open(place: &Place) -> Result<Option<Self>, CredentialsError> {
        let path = place.path.clone();
        match fs::read(&path) {
            Ok(bytes) => Self::parse(path.display().to_string(), &bytes).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound && !place.is_required => Ok(None),
            Err(source) => Err(CredentialsError::Read { path, source }),
        }
    }

    pub(crate) fn parse(origin: String, bytes: &[u8]) -> Result<Self, CredentialsError> {
        // Only the position is told: serde's message may quote a secret.
        let why = |error: serde_json::Error| format!("line {}, column {}", error.line(), error.column());
        match serde_json::from_slice(bytes) {
            Ok(content) => Ok(Self { origin, content }),
            Err(error) => Err(CredentialsError::Format {
                origin,
                why: why(error),
            }),
        }
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// The longest key that fits wins: `quay.io/ns/repo`, `quay.io/ns`, `quay.io`. At each a helper goes first.
    pub(crate) fn find(&self, registry: &str, repository: &str) -> Result<Option<Found>, CredentialsError> {
        for key in keys(registry, repository) {
            if let Some(helper) = self.helper(&key) {
                return Ok(Some(Found::Helper { helper, server: key }));
            }
            if let Some(entry) = self.entry(&key)
                && let Some(secret) = self.secret(&key, entry)?
            {
                return Ok(Some(Found::Secret(secret)));
            }
        }
        let store = self.content.creds_store.as_deref().filter(|name| !name.is_empty());
        let server = if is_docker_hub(registry) {
            "https://index.docker.io/v1/"
        } else {
            registry
        };
        Ok(store.map(|name| Found::Helper {
            helper: program(name),
            server: server.to_owned(),
        }))
    }

    fn helper(&self, key: &str) -> Option<String> {
        let name = self.content.cred_helpers.as_ref()?.get(key)?;
        Some(name).filter(|name| !name.is_empty()).map(|name| program(name))
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        let auths = self.content.auths.as_ref()?;
        // Old docker wrote URLs as keys.
        let same = |written: &str| !key.contains('/') && host_of(written) == key;
        auths
            .get(key)
            .or_else(|| auths.iter().find(|(written, _)| same(written)).map(|(_, entry)| entry))
    }

    fn secret(&self, key: &str, entry: &Entry) -> Result<Option<Secret>, CredentialsError> {
        if let Some(token) = entry.identitytoken.as_ref().filter(|token| !token.is_empty()) {
            return Ok(Some(Secret::IdentityToken(token.clone())));
        }
        if let Some(auth) = entry.auth.as_ref().filter(|auth| !auth.is_empty()) {
            let why = || format!("`auth` of {key} is not base64 of user:password");
            let decoded = decode(auth);
            return decoded.map(Some).ok_or_else(|| CredentialsError::Format {
                origin: self.origin.clone(),
                why: why(),
            });
        }
        Ok(match (&entry.username, &entry.password) {
            (Some(user), Some(password)) => Some(Secret::Password {
                user: user.clone(),
                password: password.clone(),
            }),
            // An empty entry only says that the credentials are in the store.
            _ => None,
        })
    }
}

fn keys(registry: &str, repository: &str) -> Vec<String> {
    let whole = format!("{registry}/{repository}");
    let mut keys: Vec<_> = whole.match_indices('/').map(|(at, _)| whole[..at].to_owned()).collect();
    if is_docker_hub(registry) {
        keys.splice(0..1, DOCKER_HUB.iter().rev().map(|host| (*host).to_owned()));
    }
    keys.push(whole);
    keys.reverse();
    keys
}

fn is_docker_hub(registry: &str) -> bool {
    DOCKER_HUB.contains(&registry)
}

fn host_of(key: &str) -> &str {
    let stripped = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://"));
    stripped.map_or(key, |rest| rest.split('/').next().unwrap_or(rest))
}

fn program(name: &str) -> String {
    format!("docker-credential-{name}")
}

fn decode(auth: &str) -> Option<Secret> {
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = GeneralPurpose::new(&STANDARD, lenient).decode(auth.trim()).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (user, password) = text.split_once(':')?;
    Some(Secret::Password {
        user: user.to_owned(),
        password: password.trim_end_matches('\0').to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
        "auths": {
            "quay.io": {"auth": "aG9zdDpwdw=="},
            "quay.io/ns": {"auth": "bnM6cHc"},
            "quay.io/ns/repo": {"username": "repo", "password": "p:w"},
            "https://index.docker.io/v1/": {"auth": "aHViOnB3"},
            "token.io": {"auth": "PHRva2VuPjo=", "identitytoken": "idt"},
            "stored.io": {},
            "broken.io": {"auth": "%%%"}
        },
        "credHelpers": {"ecr.aws": "ecr-login"},
        "credsStore": "desktop"
    }"#;

    fn find(registry: &str, repository: &str) -> Result<String, CredentialsError> {
        let file = AuthDocument::parse("auth.json".to_owned(), FILE.as_bytes())?;
        Ok(match file.find(registry, repository)?.unwrap() {
            Found::Secret(Secret::Password { user, password }) => format!("{user}:{password}"),
            Found::Secret(Secret::IdentityToken(token)) => format!("identity {token}"),
            Found::Helper { helper, server } => format!("{helper} for {server}"),
        })
    }

    #[test]
    fn the_longest_key_wins_then_the_store() {
        for (registry, repository, want) in [
            ("quay.io", "ns/repo", "repo:p:w"),
            ("quay.io", "ns/repo/deeper", "repo:p:w"),
            ("quay.io", "ns/repo2", "ns:pw"),
            ("quay.io", "ns2", "host:pw"),
            ("docker.io", "library/x", "hub:pw"),
            ("token.io", "x", "identity idt"),
            ("ecr.aws", "x/y", "docker-credential-ecr-login for ecr.aws"),
            ("stored.io", "x", "docker-credential-desktop for stored.io"),
            ("other.io", "x", "docker-credential-desktop for other.io"),
            ("quay.io:8443", "ns/repo", "docker-credential-desktop for quay.io:8443"),
        ] {
            assert_eq!(find(registry, repository).unwrap(), want, "{registry}/{repository}");
        }
    }

    #[test]
    fn a_broken_file_is_an_error_that_quotes_no_secret() {
        assert!(find("broken.io", "x").unwrap_err().to_string().contains("broken.io"));
        let error = AuthDocument::parse(
            "a".to_owned(),
            br#"{"auths": {"x": {"auth": 5, "password": "hunter2"}}}"#,
        );
        let error = error.err().unwrap().to_string();
        assert!(error.contains("line 1") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn only_a_named_file_must_exist() {
        let place = |is_required| Place {
            path: std::path::PathBuf::from("/nonexistent/auth.json"),
            is_required,
        };
        assert!(AuthDocument::open(&place(false)).unwrap().is_none());
        assert!(matches!(
            AuthDocument::open(&place(true)),
            Err(CredentialsError::Read { .. })
        ));
    }
}
