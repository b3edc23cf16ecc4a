//! Registries: the few requests of the distribution API that reading and pushing need, with authentication, retries and limits.
//!
//! | a registry may | result |
//! |---|---|
//! | lie about a digest, a length, a type or an encoding | only bytes with the right digest are used; a web page in place of a manifest is named |
//! | send without end: signatures, pages, headers, bodies, single bytes | limits of the descriptor and of `ImageLimits`, read time-out, minimum throughput, time-outs of resolve and pull |
//! | redirect, or name a token realm | the rules of `fetch`; at most 5 redirects |
//! | link to further pages of signatures | the next page must be on the registry and not read before; each counts as one of `signatures` |
//! | ask for credentials | only the registry itself may ask; credentials go to its origin or its realm, never along with a redirect and never back after one |
//! | answer "later" for ever | the retry schedule; a longer `Retry-After` is reported |
//! | have a bad certificate or no TLS | an error with advice; never plain HTTP in its place |
//! | put text into errors | no bodies are quoted; hosts and digests are cut and cleaned; what repeats a secret is withheld |

mod auth_state;
mod blob;
mod challenge;
mod error;
mod exchange;
mod manifest;
mod push;
mod referrers;
mod rules;
mod signatures;
mod token;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use fetch::{FailedFetch, Fetcher, Login, RedirectTarget, Secret, SentSecrets, Traffic, find_login};
use oci::ImageLimits;
use oci_client::Reference;
use reqwest::Url;
use tokio::sync::OnceCell;

use crate::error::Error;
use crate::settings::SourceSettings;

use auth_state::AuthState;

pub use error::{RegistryFailure, RegistryFault};
pub use push::Pushed;
pub(crate) use rules::Places;
pub use rules::{RegistryMirror, RegistryRule, RegistryRules};

/// Connections, tokens and facts about registries, shared by all pulls of a process.
#[derive(Clone)]
pub(crate) struct RegistryClient(Arc<SharedState>);

/// Locked while a token is fetched, so that concurrent requests share one token.
type SharedAuthState = Arc<tokio::sync::Mutex<AuthState>>;

struct SharedState {
    fetcher: Fetcher,
    auth_states: Mutex<BTreeMap<AuthKey, SharedAuthState>>,
    hosts_without_head: Mutex<BTreeSet<String>>,
}

/// Host, repository and the actions that a token is for.
type AuthKey = (String, String, &'static str);

/// One resolve, read or push of one repository. Credentials are read at most once in a session, and again in the next.
pub(crate) struct Session {
    client: RegistryClient,
    settings: Arc<SourceSettings>,
    fetcher: Fetcher,
    /// The registry as the user wrote it.
    registry: String,
    /// Host and port of the registry's API, which Docker Hub has elsewhere.
    host: String,
    repository: String,
    /// Actions that a token is asked for (CNCF distribution, "Token Scope Documentation").
    actions: &'static str,
    auth: SharedAuthState,
    login: OnceCell<Option<Login>>,
    /// The token that was sent last.
    sent_token: Mutex<Option<Arc<str>>>,
    /// Failures of the mirrors that were asked before, for errors.
    failed_mirrors: Vec<String>,
}

impl RegistryClient {
    pub(crate) fn new(settings: &SourceSettings) -> Result<Self, Error> {
        Ok(Self(Arc::new(SharedState {
            fetcher: Fetcher::new(settings.http.clone())?,
            auth_states: Mutex::default(),
            hosts_without_head: Mutex::default(),
        })))
    }

    /// Returns the connections, for requests to other servers.
    pub(crate) fn fetcher(&self) -> &Fetcher {
        &self.0.fetcher
    }

    pub(crate) fn session(
        &self,
        reference: &Reference,
        settings: &Arc<SourceSettings>,
        actions: &'static str,
    ) -> Session {
        let host = reference.resolve_registry().to_owned();
        let repository = reference.repository().to_owned();
        let key = (host.clone(), repository.clone(), actions);
        let mut states = self.0.auth_states.lock().unwrap_or_else(PoisonError::into_inner);
        Session {
            client: self.clone(),
            settings: Arc::clone(settings),
            fetcher: self.0.fetcher.with_own_traffic(settings.registry_wait),
            registry: reference.registry().to_owned(),
            host,
            repository,
            actions,
            auth: Arc::clone(states.entry(key).or_default()),
            login: OnceCell::new(),
            sent_token: Mutex::default(),
            failed_mirrors: Vec::new(),
        }
    }
}

impl Session {
    /// Names failed mirrors in each error.
    pub(crate) fn after(self, failed_mirrors: Vec<String>) -> Self {
        Self { failed_mirrors, ..self }
    }

    /// Returns the bytes received and the requests sent so far.
    pub(crate) fn traffic(&self) -> Traffic {
        self.fetcher.traffic()
    }

    pub(crate) fn limits(&self) -> &ImageLimits {
        &self.settings().limits
    }

    /// Returns what this session has sent and what must not come back in an error.
    pub(crate) fn sent_secrets(&self) -> SentSecrets {
        let mut secrets = SentSecrets::default();
        if let Some(token) = &*self.sent_token.lock().unwrap_or_else(PoisonError::into_inner) {
            secrets.add(token);
        }
        match self.login.get().and_then(|login| Some(&login.as_ref()?.secret)) {
            Some(Secret::Password { user, password }) => secrets.add_login(user, password),
            Some(Secret::IdentityToken(token)) => secrets.add_login("<token>", token),
            None => {}
        }
        secrets
    }

    fn settings(&self) -> &SourceSettings {
        &self.settings
    }

    pub(crate) fn failed(&self, fault: impl Into<RegistryFault>) -> Error {
        self.failed_by(None, fault.into())
    }

    /// Reports a failure of the host in `url`, which a redirect or a challenge may have chosen.
    fn failed_at(&self, url: &Url, fault: RegistryFault) -> Error {
        self.failed_by(Some(fetch::authority(url)), fault)
    }

    fn fetch_failed(&self, failed: FailedFetch) -> Error {
        self.failed_by(Some(failed.host), failed.error.into())
    }

    fn failed_by(&self, host: Option<String>, fault: RegistryFault) -> Error {
        let secrets = self.sent_secrets();
        let at = host.filter(|host| *host != self.host).map(|host| secrets.show(&host));
        Error::Registry(Box::new(RegistryFailure {
            registry: self.registry.clone(),
            repository: self.repository.clone(),
            at,
            fault: fault.with_shown_text(|text| secrets.show(text)),
            failed_mirrors: self.failed_mirrors.clone(),
        }))
    }

    /// Returns the credentials for this repository, if any are configured. A broken configuration is an error: an
    /// anonymous request would only lead to a 401 that hides the cause.
    async fn login(&self) -> Result<Option<&Login>, Error> {
        let settings = self.settings();
        let find = || find_login(&settings.logins, &settings.auth_files, &self.registry, &self.repository);
        Ok(self.login.get_or_try_init(find).await?.as_ref())
    }

    /// Returns the URL of an API path of the registry.
    fn home(&self, path: &str) -> Result<RedirectTarget, Error> {
        let scheme = if self.speaks_plain_http() { "http" } else { "https" };
        let url = format!("{scheme}://{}{}", self.host, self.path(path));
        let url = Url::parse(&url).map_err(|_| self.failed(RegistryFault::Url(url)))?;
        RedirectTarget::configured(url).map_err(|error| self.failed(error))
    }

    /// Returns `path` from the root of the registry. A path without a leading slash is below the repository.
    fn path(&self, path: &str) -> String {
        if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/v2/{}/{path}", self.repository)
        }
    }

    fn speaks_plain_http(&self) -> bool {
        self.settings().http.allows_plain_http(&self.host)
    }

    fn has_no_head(&self) -> bool {
        let hosts = self.client.0.hosts_without_head.lock();
        hosts.unwrap_or_else(PoisonError::into_inner).contains(&self.host)
    }

    fn remember_no_head(&self) {
        let hosts = self.client.0.hosts_without_head.lock();
        hosts.unwrap_or_else(PoisonError::into_inner).insert(self.host.clone());
    }
}

#[cfg(test)]
mod tests;
