//! Sessions with registries, and the choice between a registry and its mirrors.

use std::sync::Arc;
use std::time::Duration;

use fetch::Fetcher;
use model::text::chain;
use oci::Digest;
use oci_client::Reference;
use reqwest::Url;
use tokio::sync::OnceCell;

use crate::registry::{AuthStates, Session};
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
    pub(crate) settings: &'a Arc<SourceSettings>,
}

impl Registries<'_> {
    /// Starts a session that reads. Fails for a reference that makes no URL.
    pub(crate) fn reading(self, reference: &Reference) -> Result<Session, Error> {
        self.session_for(reference, "pull")
    }

    /// Starts a session that reads and writes. Fails for a reference that makes no URL.
    pub(crate) fn pushing(self, reference: &Reference) -> Result<Session, Error> {
        self.session_for(reference, "pull,push")
    }

    /// Starts a session whose tokens are for these actions.
    fn session_for(self, reference: &Reference, actions: &'static str) -> Result<Session, Error> {
        let host = reference.resolve_registry().to_owned();
        let repository = reference.repository().to_owned();
        let is_plain = self.settings.http.allows_plain_http(&host);
        let scheme = if is_plain { "http" } else { "https" };
        let url = format!("{scheme}://{host}/v2/{repository}/");
        let key = (host.clone(), repository.clone(), actions);
        let place = ServerPlace {
            text: format!("registry {}, repository {repository}", reference.registry()),
            host,
            name: reference.registry().to_owned(),
            is_registry: true,
            failed_mirrors: Vec::new(),
        };
        let fetcher = self.fetcher.with_own_traffic(self.settings.registry_wait);
        let server = AskedServer::new(fetcher, place);
        Ok(Session {
            settings: Arc::clone(self.settings),
            base: Url::parse(&url).map_err(|_| server.failed(ServerFault::Url(url)))?,
            server,
            repository,
            actions,
            auth: Arc::clone(self.auth_states.lock().entry(key).or_default()),
            login: OnceCell::new(),
        })
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
            let session = self.reading(reference)?;
            return Err(session.server.failed(ServerFault::Blocked));
        };
        let mut registry = self.reading(&places.registry)?;
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
        let session = self.reading(mirror)?;
        let resolved = session.resolve(version).await;
        let digest = session.server.redacted(resolved)?;
        Ok((session, digest))
    }
}
