//! Talking to registries: the distribution API's few requests that reading needs, each with
//! authentication, retries and limits.

mod blob;
mod challenge;
mod connections;
mod exchange;
mod fault;
mod foreign;
mod grant;
mod hop;
mod link;
mod lookaside;
mod manifest;
mod names;
mod pace;
mod referrers;
mod signatures;
mod tls;
mod token;
mod waits;
mod zone;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oci_client::Reference;
use reqwest::Url;
use tokio::sync::OnceCell;

use crate::auth::{self, Login, Secret};
use crate::error::Error;
use crate::settings::{Settings, SettingsError};

use connections::Connections;
use grant::Grant;
use hop::Hop;
use names::World;

pub use fault::{Fault, RegistryError};
pub use hop::Refusal;

/// Connections, tokens and what was learned about registries, shared by all pulls of a process.
#[derive(Clone)]
pub(crate) struct Client(Arc<Shared>);

/// Held while a token is fetched, so that requests side by side share it.
type SharedGrant = Arc<tokio::sync::Mutex<Grant>>;

struct Shared {
    http: Connections,
    settings: Arc<Settings>,
    /// By host and repository.
    grants: Mutex<BTreeMap<(String, String), SharedGrant>>,
    headless: Mutex<BTreeSet<String>>,
}

/// One resolve or read of one repository. Credentials are read at most once per session, and anew in the next.
pub(crate) struct Session {
    client: Client,
    /// As the user wrote it.
    registry: String,
    /// Where its API is.
    host: String,
    repository: String,
    grant: SharedGrant,
    login: OnceCell<Option<Login>>,
    /// The token that was sent last.
    sent: Mutex<Option<Arc<str>>>,
    bytes: AtomicU64,
    requests: AtomicU64,
}

impl Client {
    pub(crate) fn new(settings: Arc<Settings>) -> Result<Self, SettingsError> {
        Self::within(World::default(), settings)
    }

    fn within(world: World, settings: Arc<Settings>) -> Result<Self, SettingsError> {
        let http = Connections::new(&settings, world)?;
        Ok(Self(Arc::new(Shared {
            http,
            settings,
            grants: Mutex::default(),
            headless: Mutex::default(),
        })))
    }

    pub(crate) fn session(&self, reference: &Reference) -> Session {
        let host = reference.resolve_registry().to_owned();
        let repository = reference.repository().to_owned();
        let key = (host.clone(), repository.clone());
        let mut grants = self.0.grants.lock().unwrap_or_else(PoisonError::into_inner);
        Session {
            client: self.clone(),
            registry: reference.registry().to_owned(),
            host,
            repository,
            grant: Arc::clone(grants.entry(key).or_default()),
            login: OnceCell::new(),
            sent: Mutex::default(),
            bytes: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        }
    }
}

impl Session {
    /// Bytes received and requests sent so far.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        (
            self.bytes.load(Ordering::Relaxed),
            self.requests.load(Ordering::Relaxed),
        )
    }

    fn settings(&self) -> &Settings {
        &self.client.0.settings
    }

    fn count_bytes(&self, count: usize) {
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn failed(&self, fault: Fault) -> Error {
        self.failed_by(None, fault)
    }

    /// A failure of whoever was asked, which a redirect or a challenge may have made somebody else.
    fn failed_at(&self, url: &Url, fault: Fault) -> Error {
        self.failed_by(Some(hop::authority(url)), fault)
    }

    fn failed_by(&self, host: Option<String>, fault: Fault) -> Error {
        let secrets = self.secrets();
        let show = |text: &str| foreign::shown(text, &secrets);
        let at = host.filter(|host| *host != self.host).map(|host| show(&host));
        Error::Registry(Box::new(RegistryError {
            registry: self.registry.clone(),
            repository: self.repository.clone(),
            at,
            fault: fault.quoting(show),
        }))
    }

    /// What was sent and must not come back in an error, in the forms it may come in.
    fn secrets(&self) -> Vec<String> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut secrets: Vec<String> = sent.iter().map(ToString::to_string).collect();
        match self.login.get().and_then(|login| Some(&login.as_ref()?.secret)) {
            Some(Secret::Password { user, password }) => {
                secrets.extend([password.clone(), STANDARD.encode(format!("{user}:{password}"))]);
            }
            Some(Secret::IdentityToken(token)) => {
                secrets.extend([token.clone(), STANDARD.encode(format!("<token>:{token}"))]);
            }
            None => {}
        }
        secrets
    }

    /// The credentials for this repository, if any are configured. A broken configuration is an error:
    /// going on as nobody would only lead to a 401 that lies about its cause.
    async fn login(&self) -> Result<Option<&Login>, Error> {
        let settings = self.settings();
        let find = || auth::find(&settings.logins, &settings.auth_files, &self.registry, &self.repository);
        Ok(self.login.get_or_try_init(find).await?.as_ref())
    }

    fn home(&self, path: &str) -> Result<Hop, Error> {
        let scheme = if self.settings().is_plain(&self.host) {
            "http"
        } else {
            "https"
        };
        let url = format!("{scheme}://{}{}", self.host, self.path(path));
        let url = Url::parse(&url).map_err(|_| self.failed(Fault::Url(url)))?;
        Hop::home(url).map_err(|fault| self.failed(fault))
    }

    /// From the root of the registry, if it is not already.
    fn path(&self, path: &str) -> String {
        match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/v2/{}/{path}", self.repository),
        }
    }

    fn has_no_head(&self) -> bool {
        let headless = &self.client.0.headless;
        headless
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&self.host)
    }

    fn learn_no_head(&self) {
        let headless = &self.client.0.headless;
        headless
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(self.host.clone());
    }
}
