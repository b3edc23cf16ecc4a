//! Registries: the few requests of the distribution API that reading and pushing need, with authentication, retries and limits.
//!
//! | a registry may | result |
//! |---|---|
//! | lie about a digest, a length, a type or an encoding | only bytes with the right digest are used; a web page in place of a manifest is named |
//! | compress a body though nothing asks for it | documents are decoded from gzip within the limits; another coding, and one of a layer, is named |
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
mod exchange;
mod manifest;
mod push;
mod referrers;
mod rules;
mod signatures;
mod token;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fetch::{FailedFetch, FetchResponse, Fetcher, Login, RedirectTarget, SentSecrets, Traffic, find_login};
use oci::ImageLimits;
use oci_client::Reference;
use reqwest::Url;
use tokio::sync::OnceCell;

use crate::error::Error;
use crate::failure::{ServerFault, ServerPlace};
use crate::settings::SourceSettings;

use auth_state::AuthState;

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
}

/// Host, repository and the actions that a token is for.
type AuthKey = (String, String, &'static str);

/// One resolve, read or push of one repository. Credentials are read at most once in a session, and again in the next.
pub(crate) struct Session {
    settings: Arc<SourceSettings>,
    fetcher: Fetcher,
    place: ServerPlace,
    repository: String,
    /// Actions that a token is asked for (CNCF distribution, "Token Scope Documentation").
    actions: &'static str,
    auth: SharedAuthState,
    login: OnceCell<Option<Login>>,
    /// The token that was sent last.
    sent_token: Mutex<Option<Arc<str>>>,
}

impl RegistryClient {
    pub(crate) fn new(settings: &SourceSettings) -> Result<Self, Error> {
        Ok(Self(Arc::new(SharedState {
            fetcher: Fetcher::new(settings.http.clone())?,
            auth_states: Mutex::default(),
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
            settings: Arc::clone(settings),
            fetcher: self.0.fetcher.with_own_traffic(settings.registry_wait),
            place: ServerPlace {
                text: format!("registry {}, repository {repository}", reference.registry()),
                host,
                name: reference.registry().to_owned(),
                is_registry: true,
                failed_mirrors: Vec::new(),
            },
            repository,
            actions,
            auth: Arc::clone(states.entry(key).or_default()),
            login: OnceCell::new(),
            sent_token: Mutex::default(),
        }
    }
}

impl Session {
    /// Names failed mirrors in each error.
    pub(crate) fn after(mut self, failed_mirrors: Vec<String>) -> Self {
        self.place.failed_mirrors = failed_mirrors;
        self
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
        if let Some(Some(login)) = self.login.get() {
            login.secret.add_to(&mut secrets);
        }
        secrets
    }

    fn settings(&self) -> &SourceSettings {
        &self.settings
    }

    pub(crate) fn failed(&self, fault: impl Into<ServerFault>) -> Error {
        self.place.failed(None, fault.into(), &self.sent_secrets())
    }

    /// Reports a failure of the server that answered, which a redirect may have chosen.
    fn failed_at(&self, response: &FetchResponse, fault: impl Into<ServerFault>) -> Error {
        let at = Some(response.peer());
        self.place.failed(at, fault.into(), &self.sent_secrets())
    }

    fn fetch_failed(&self, failed: FailedFetch) -> Error {
        let at = Some(failed.peer);
        self.place.failed(at, failed.error.into(), &self.sent_secrets())
    }

    /// Returns the credentials for this repository, if any are configured. A broken configuration is an error: an
    /// anonymous request would only lead to a 401 that hides the cause.
    async fn login(&self) -> Result<Option<&Login>, Error> {
        let settings = self.settings();
        let find = || {
            find_login(
                &settings.logins,
                &settings.auth_files,
                &self.place.name,
                &self.repository,
            )
        };
        Ok(self.login.get_or_try_init(find).await?.as_ref())
    }

    /// Returns the URL of an API path of the registry.
    fn home(&self, path: &str) -> Result<RedirectTarget, Error> {
        let scheme = if self.speaks_plain_http() { "http" } else { "https" };
        let url = format!("{scheme}://{}{}", self.place.host, self.path(path));
        let url = Url::parse(&url).map_err(|_| self.failed(ServerFault::Url(url)))?;
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
        self.settings().http.allows_plain_http(&self.place.host)
    }
}

#[cfg(test)]
mod tests;
