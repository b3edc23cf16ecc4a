//! Talking to registries: the distribution API's few requests that reading needs, each with
//! authentication, retries and limits.

mod blob;
mod challenge;
mod connections;
mod exchange;
mod fault;
mod grant;
mod hop;
mod manifest;
mod retry;
mod tls;
mod token;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use oci_client::Reference;
use tokio::sync::OnceCell;

use crate::auth::{self, Login};
use crate::error::Error;
use crate::settings::{Settings, SettingsError};

use connections::Connections;
use grant::Grant;

pub use fault::{Fault, RegistryError};

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
    bytes: AtomicU64,
    requests: AtomicU64,
}

impl Client {
    pub(crate) fn new(settings: Arc<Settings>) -> Result<Self, SettingsError> {
        let http = Connections::new(&settings)?;
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
        let (registry, repository) = (self.registry.clone(), self.repository.clone());
        Error::Registry(Box::new(RegistryError {
            registry,
            repository,
            fault,
        }))
    }

    /// The credentials for this repository, if any are configured. A broken configuration is an error:
    /// going on as nobody would only lead to a 401 that lies about its cause.
    async fn login(&self) -> Result<Option<&Login>, Error> {
        let settings = self.settings();
        let find = || auth::find(&settings.logins, &settings.auth_files, &self.registry, &self.repository);
        Ok(self.login.get_or_try_init(find).await?.as_ref())
    }

    fn url(&self, path: &str) -> Result<reqwest::Url, Error> {
        let scheme = if self.settings().is_plain(&self.host) {
            "http"
        } else {
            "https"
        };
        let url = format!("{scheme}://{}/v2/{}/{path}", self.host, self.repository);
        reqwest::Url::parse(&url).map_err(|_| self.failed(Fault::Url(url)))
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
