//! Sessions with registries, and the choice between a registry and its mirrors.

use std::sync::Arc;
use std::time::Duration;

use fetch::{FetchError, Fetcher, RequestSpec};
use model::text::chain;
use oci::Digest;
use oci_client::Reference;
use reqwest::Url;
use tokio::sync::OnceCell;

use crate::registry::{AuthStates, InsecureHosts, Session};
use crate::server::AskedServer;
use crate::stream::within;
use crate::{Error, ServerFault, ServerPlace, SourceSettings};

/// Maximum time for one question to a mirror of a registry, with its retries. The next mirror or
/// the registry is asked after it.
const MIRROR_TIME: Duration = Duration::from_secs(20);

/// Registries, with the connections, tokens and settings by which they are asked.
#[derive(Clone, Copy)]
pub(crate) struct Registries<'a> {
    pub(crate) fetcher: &'a Fetcher,
    pub(crate) auth_states: &'a AuthStates,
    pub(crate) insecure_hosts: &'a InsecureHosts,
    pub(crate) settings: &'a Arc<SourceSettings>,
}

impl Registries<'_> {
    /// Starts a session that reads. Fails for a reference that makes no URL.
    pub(crate) async fn reading(self, reference: &Reference) -> Result<Session, Error> {
        self.repository_session(reference, "pull").await
    }

    /// Starts a session that reads and writes. Fails for a reference that makes no URL.
    pub(crate) async fn pushing(self, reference: &Reference) -> Result<Session, Error> {
        self.repository_session(reference, "pull,push").await
    }

    /// Starts a session that reads and removes manifests. Fails for a reference that makes no URL.
    pub(crate) async fn deleting(self, reference: &Reference) -> Result<Session, Error> {
        self.repository_session(reference, "pull,delete").await
    }

    /// Starts a session that lists the repositories of a registry.
    pub(crate) async fn listing(self, reference: &Reference) -> Result<Session, Error> {
        self.session_for(reference, "registry:catalog:*".to_owned())
            .await
    }

    /// Starts a session whose tokens are for these actions in the repository.
    async fn repository_session(
        self,
        reference: &Reference,
        actions: &str,
    ) -> Result<Session, Error> {
        let scope = format!("repository:{}:{actions}", reference.repository());
        self.session_for(reference, scope).await
    }

    /// Starts a session whose tokens have this scope.
    async fn session_for(self, reference: &Reference, scope: String) -> Result<Session, Error> {
        let host = reference.resolve_registry().to_owned();
        let repository = reference.repository().to_owned();
        let is_plain = self.is_plain(&host).await;
        let scheme = if is_plain { "http" } else { "https" };
        let url = format!("{scheme}://{host}/v2/{repository}/");
        let key = (host.clone(), scope.clone());
        let place = ServerPlace {
            text: format!("registry {}, repository {repository}", reference.registry()),
            host,
            name: reference.registry().to_owned(),
            is_registry: true,
            failed_mirrors: Vec::new(),
        };
        let mut fetcher = self.fetcher.with_own_traffic(self.settings.registry_wait);
        if is_plain && !self.settings.http.allows_plain_http(&place.host) {
            fetcher = fetcher.with_plain_http(&place.host);
        }
        let server = AskedServer::new(fetcher, place);
        Ok(Session {
            settings: Arc::clone(self.settings),
            base: Url::parse(&url).map_err(|_| server.failed(ServerFault::Url(url)))?,
            server,
            scope,
            repository,
            auth: Arc::clone(self.auth_states.lock().entry(key).or_default()),
            login: OnceCell::new(),
        })
    }

    /// Returns true if a host is asked over plain HTTP: it is listed so, or the rules call it
    /// insecure and it does not speak TLS. Certificates are verified all the same.
    async fn is_plain(self, host: &str) -> bool {
        if self.settings.http.allows_plain_http(host) {
            return true;
        }
        if !self.settings.rules.allows_plain_http(host) {
            return false;
        }
        let known = self.insecure_hosts.lock().get(host).copied();
        if let Some(is_plain) = known {
            return is_plain;
        }
        let Ok(url) = Url::parse(&format!("https://{host}/v2/")) else {
            return false;
        };
        let asked = self.fetcher.follow(url, &RequestSpec::default()).await;
        let answer = match asked {
            Ok(_) => Some(false),
            Err(failed) => match failed.error {
                FetchError::NotTls => Some(true),
                FetchError::Tls(_) => Some(false),
                _ => None,
            },
        };
        let is_plain = match answer {
            Some(is_plain) => is_plain,
            None => self.answers_plainly(host).await,
        };
        // A host that does not answer at all is asked again.
        if is_plain || answer.is_some() {
            let mut known = self.insecure_hosts.lock();
            known.insert(host.to_owned(), is_plain);
        }
        is_plain
    }

    /// Returns true if a host answers over plain HTTP.
    async fn answers_plainly(self, host: &str) -> bool {
        let Ok(url) = Url::parse(&format!("http://{host}/v2/")) else {
            return false;
        };
        let fetcher = self.fetcher.clone().with_plain_http(host);
        fetcher.follow(url, &RequestSpec::default()).await.is_ok()
    }

    /// Returns the digest of a reference, as the first mirror has it that answers, else the
    /// registry itself.
    pub(crate) async fn resolve(
        self,
        reference: &Reference,
        pinned: Option<&Digest>,
    ) -> Result<Digest, Error> {
        let version = match pinned {
            Some(digest) => digest.as_str(),
            // As podman and docker complete a reference without tag.
            None => reference.tag().unwrap_or("latest"),
        };
        let (session, digest) = self.first_place(reference, version).await?;
        match digest {
            Some(digest) => Ok(digest),
            None => session.resolve(version).await,
        }
    }

    /// Returns a session with the first mirror that has a tag or digest, else with the registry
    /// itself, which is not asked here.
    pub(crate) async fn session_with(
        self,
        reference: &Reference,
        version: &str,
    ) -> Result<Session, Error> {
        let (session, _) = self.first_place(reference, version).await?;
        Ok(session)
    }

    /// Returns a session with the first mirror that has a tag or digest, and its digest; else with
    /// the registry itself.
    async fn first_place(
        self,
        reference: &Reference,
        version: &str,
    ) -> Result<(Session, Option<Digest>), Error> {
        let Some(places) = self.settings.rules.places(reference, version) else {
            let session = self.reading(reference).await?;
            return Err(session.server.failed(ServerFault::Blocked));
        };
        if self.settings.no_mirrors {
            return Ok((self.reading(reference).await?, None));
        }
        let mut registry = self.reading(&places.registry).await?;
        for mirror in &places.mirrors {
            match within(MIRROR_TIME, self.ask_mirror(mirror, version)).await {
                Ok((session, digest)) => return Ok((session, Some(digest))),
                Err(error) => {
                    let failure = chain(&error);
                    tracing::debug!(failure, "a mirror of the registry failed");
                    registry.server.place.failed_mirrors.push(failure);
                }
            }
        }
        Ok((registry, None))
    }

    async fn ask_mirror(
        self,
        mirror: &Reference,
        version: &str,
    ) -> Result<(Session, Digest), Error> {
        let session = self.reading(mirror).await?;
        let resolved = session.resolve(version).await;
        let digest = session.server.redacted(resolved)?;
        Ok((session, digest))
    }
}
