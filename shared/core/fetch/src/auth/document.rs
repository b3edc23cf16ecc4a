//! The format of `auth.json` and `config.json`.

use std::{collections::BTreeMap, fmt, fs, io::ErrorKind, path::PathBuf};

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use crate::auth::error::CredentialsError;
use crate::auth::helper;
use crate::auth::login::{Login, TOKEN_USER};

/// Names of Docker Hub that share one login in docker.
const DOCKER_HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuthDocument {
    /// File or secret that holds the document, for errors.
    #[serde(skip)]
    origin: String,
    auths: Option<BTreeMap<String, AuthEntry>>,
    cred_helpers: Option<BTreeMap<String, String>>,
    creds_store: Option<String>,
}

#[derive(Deserialize)]
struct AuthEntry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

/// Prints no secret.
impl fmt::Debug for AuthDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.origin, f)
    }
}

impl AuthDocument {
    pub(crate) fn open(path: PathBuf, is_required: bool) -> Result<Option<Self>, CredentialsError> {
        match fs::read(&path) {
            Ok(bytes) => Self::parse(path.display().to_string(), &bytes).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound && !is_required => Ok(None),
            Err(source) => Err(CredentialsError::Read { path, source }),
        }
    }

    pub(crate) fn parse(origin: String, bytes: &[u8]) -> Result<Self, CredentialsError> {
        match serde_json::from_slice::<Self>(bytes) {
            Ok(document) => Ok(Self { origin, ..document }),
            Err(error) => Err(CredentialsError::Format {
                origin,
                // Only the position, because serde's message may quote a secret.
                why: format!("line {}, column {}", error.line(), error.column()),
            }),
        }
    }

    /// Finds the longest key that fits: `quay.io/ns/repo`, then `quay.io/ns`, then `quay.io`. A
    /// helper of a key wins over its entry. The credential store is last.
    pub(crate) async fn find(
        &self,
        registry: &str,
        repository: &str,
    ) -> Result<Option<Login>, CredentialsError> {
        let helpers = self.cred_helpers.as_ref();
        for key in keys(registry, repository) {
            if let Some(helper) = helpers.and_then(|helpers| helpers.get(&key))
                && !helper.is_empty()
            {
                return self.ask(helper, &key).await;
            }
            if let Some(entry) = self.entry(&key)
                && let Some(login) = self.login(&key, entry)?
            {
                return Ok(Some(login));
            }
        }
        let server = if is_docker_hub(registry) {
            "https://index.docker.io/v1/"
        } else {
            registry
        };
        match self.creds_store.as_deref() {
            None | Some("") => Ok(None),
            Some(store) => self.ask(store, server).await,
        }
    }

    /// Asks a helper program by its short name.
    async fn ask(&self, name: &str, server: &str) -> Result<Option<Login>, CredentialsError> {
        let helper = format!("docker-credential-{name}");
        let answer = helper::get(&helper, server).await?;
        Ok(answer.map(|answer| Login {
            user: answer.username,
            password: answer.secret,
            origin: format!("{helper} (named in {})", self.origin),
        }))
    }

    fn entry(&self, key: &str) -> Option<&AuthEntry> {
        let auths = self.auths.as_ref()?;
        if let Some(entry) = auths.get(key) {
            return Some(entry);
        }
        if key.contains('/') {
            return None;
        }
        // Old docker wrote URLs as keys.
        let mut auths = auths.iter();
        let (_, entry) = auths.find(|(written, _)| host_of(written) == key)?;
        Some(entry)
    }

    fn login_of(&self, user: &str, password: &str) -> Login {
        Login {
            user: user.to_owned(),
            password: password.to_owned(),
            origin: self.origin.clone(),
        }
    }

    fn login(&self, key: &str, entry: &AuthEntry) -> Result<Option<Login>, CredentialsError> {
        if let Some(token) = &entry.identitytoken
            && !token.is_empty()
        {
            return Ok(Some(self.login_of(TOKEN_USER, token)));
        }
        if let Some(auth) = &entry.auth
            && !auth.is_empty()
        {
            let decoded = decode(auth);
            let fields = decoded.as_deref().and_then(|text| text.split_once(':'));
            let (user, password) = fields.ok_or_else(|| CredentialsError::Format {
                origin: self.origin.clone(),
                why: format!("`auth` of {key} is not base64 of user:password"),
            })?;
            return Ok(Some(self.login_of(user, password.trim_end_matches('\0'))));
        }
        match (&entry.username, &entry.password) {
            (Some(user), Some(password)) => Ok(Some(self.login_of(user, password))),
            // docker writes an empty entry when the credentials are in the store.
            _ => Ok(None),
        }
    }
}

fn keys(registry: &str, repository: &str) -> Vec<String> {
    let whole = format!("{registry}/{repository}");
    let mut keys: Vec<_> = whole
        .match_indices('/')
        .map(|(at, _)| whole[..at].to_owned())
        .collect();
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
    let url = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"));
    match url {
        Some(rest) => rest.split('/').next().unwrap_or(rest),
        None => key,
    }
}

fn decode(auth: &str) -> Option<String> {
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = GeneralPurpose::new(&STANDARD, lenient)
        .decode(auth.trim())
        .ok()?;
    String::from_utf8(bytes).ok()
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
        "credHelpers": {"ecr.aws": "none-ecr-login"},
        "credsStore": "none-desktop"
    }"#;

    /// Returns the login, or the program that is asked and is not on the path.
    async fn find(registry: &str, repository: &str) -> Result<String, CredentialsError> {
        let document = AuthDocument::parse("auth.json".to_owned(), FILE.as_bytes())?;
        Ok(match document.find(registry, repository).await {
            Err(CredentialsError::Run { helper, .. }) => helper,
            found => {
                let login = found?.unwrap();
                match login.identity_token() {
                    None => format!("{}:{}", login.user, login.password),
                    Some(token) => format!("identity {token}"),
                }
            }
        })
    }

    #[tokio::test]
    async fn find_prefers_longest_key_then_store() {
        for (registry, repository, want) in [
            ("quay.io", "ns/repo", "repo:p:w"),
            ("quay.io", "ns/repo/deeper", "repo:p:w"),
            ("quay.io", "ns/repo2", "ns:pw"),
            ("quay.io", "ns2", "host:pw"),
            ("docker.io", "library/x", "hub:pw"),
            ("token.io", "x", "identity idt"),
            ("ecr.aws", "x/y", "docker-credential-none-ecr-login"),
            ("stored.io", "x", "docker-credential-none-desktop"),
            ("other.io", "x", "docker-credential-none-desktop"),
            ("quay.io:8443", "ns/repo", "docker-credential-none-desktop"),
        ] {
            let found = find(registry, repository).await.unwrap();
            assert_eq!(found, want, "{registry}/{repository}");
        }
    }

    #[tokio::test]
    async fn error_of_broken_file_quotes_no_secret() {
        let error = find("broken.io", "x").await.unwrap_err().to_string();
        assert!(
            error.contains("broken.io") && !error.contains("%%%"),
            "{error}"
        );
        let broken = br#"{"auths": {"x": {"auth": 5, "password": "hunter2"}}}"#;
        let error = AuthDocument::parse("a".to_owned(), broken)
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("line 1") && !error.contains("hunter2"),
            "{error}"
        );
    }

    #[test]
    fn open_missing_file_fails_only_if_required() {
        let open = |is_required| AuthDocument::open("/nonexistent/auth.json".into(), is_required);
        assert!(open(false).unwrap().is_none());
        assert!(matches!(open(true), Err(CredentialsError::Read { .. })));
    }
}
