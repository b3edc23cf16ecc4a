//! One server that is asked: its errors name it, and hold no secret that was sent to it.

use fetch::{
    AttemptCount, FailedFetch, FetchResponse, Fetcher, Login, Peer, RequestSpec, Retries, SentSecrets, find_login,
};
use parking_lot::Mutex;
use reqwest::Url;

use crate::{Error, ServerFailure, ServerFault, ServerPlace, SourceSettings};

/// The connections to a server for one resolve, read or push.
pub(crate) struct AskedServer {
    pub(crate) fetcher: Fetcher,
    pub(crate) place: ServerPlace,
    /// Texts that were sent and must not come back in an error.
    pub(crate) secrets: Mutex<SentSecrets>,
}

impl AskedServer {
    pub(crate) fn new(fetcher: Fetcher, place: ServerPlace) -> Self {
        Self {
            fetcher,
            place,
            secrets: Mutex::default(),
        }
    }

    /// Returns the credentials for a path of the server, if any are configured. No error repeats them from now on.
    pub(crate) async fn login(&self, settings: &SourceSettings, path: &str) -> Result<Option<Login>, Error> {
        let found = find_login(&settings.logins, &settings.auth_files, &self.place.name, path).await?;
        if let Some(login) = &found {
            if let Some(reason) = settings.no_logins {
                let origin = login.origin.clone();
                return Err(Error::RefusedLogin { origin, reason });
            }
            self.secrets.lock().add_login(&login.user, &login.password);
        }
        Ok(found)
    }

    /// Starts the attempts of one request.
    pub(crate) fn retries(&self) -> Retries {
        Retries::new(&self.fetcher)
    }

    /// Sends a request to a configured URL and follows redirects. Returns any other answer, whatever its status.
    pub(crate) async fn follow(&self, url: Url, request: &RequestSpec) -> Result<FetchResponse, Error> {
        let peer = Peer::of(&url, None);
        // Before anything is sent, because the request may carry a password.
        if url.scheme() == "http" && !self.fetcher.settings().allows_plain_http(&peer.host) {
            return Err(self.report(Some(peer), ServerFault::PlainHttp));
        }
        self.fetched(self.fetcher.follow(url, request).await)
    }

    pub(crate) fn failed(&self, fault: impl Into<ServerFault>) -> Error {
        self.report(None, fault.into())
    }

    /// Reports a failure of the server that answered, which a redirect may have chosen.
    pub(crate) fn failed_at(&self, response: &FetchResponse, fault: impl Into<ServerFault>) -> Error {
        self.report(Some(response.peer.clone()), fault.into())
    }

    /// Reports the failure of an exchange, if it failed.
    pub(crate) fn fetched<T>(&self, fetched: Result<T, FailedFetch>) -> Result<T, Error> {
        fetched.map_err(|failed| self.report(Some(failed.peer), failed.error.into()))
    }

    /// Reports a failure, of another server if `at` is one. Its text is cleaned of what the server chose.
    fn report(&self, at: Option<Peer>, fault: ServerFault) -> Error {
        let secrets = self.secrets.lock();
        let at = at.filter(|peer| peer.host != self.place.host || peer.proxy.is_some());
        let shown = |peer: Peer| Peer {
            host: secrets.show(&peer.host),
            ..peer
        };
        Error::Server(Box::new(ServerFailure {
            place: self.place.clone(),
            at: at.map(shown),
            fault: fault.with_shown_text(|text| secrets.show(text)),
            attempts: AttemptCount::default(),
        }))
    }

    /// Replaces an error whose text repeats a secret that was sent.
    pub(crate) fn redacted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.without(&self.secrets.lock()))
    }
}
