//! One server that is asked: its errors name it, and hold no secret that was sent to it. The module
//! `registry` has the requests of registries. Other servers have one URL, with credentials, retries
//! and limits.
//!
//! | a server may | result |
//! |---|---|
//! | redirect | the rules of `fetch`; credentials go to the host of the configured URL only |
//! | answer "later" | the retry schedule; a longer `Retry-After` is reported |
//! | answer with a login page | named as one |
//! | put text into errors | no bodies are quoted; hosts are cut and cleaned; what repeats a secret is withheld |

use fetch::{
    AttemptCount, FailedFetch, FetchError, FetchResponse, Fetcher, Login, Peer, RequestSpec,
    Retries, SentSecrets, authority, find_login,
};
use parking_lot::Mutex;
use reqwest::header::{CONTENT_TYPE, HeaderMap, IF_NONE_MATCH};
use reqwest::{StatusCode, Url};

use crate::{Error, ServerFailure, ServerFault, ServerPlace, SourceSettings};

/// The connections to a server for one resolve, read or push.
pub(crate) struct AskedServer {
    pub(crate) fetcher: Fetcher,
    pub(crate) place: ServerPlace,
    /// Texts that were sent and must not come back in an error.
    pub(crate) secrets: Mutex<SentSecrets>,
}

/// Servers that are not registries, with the connections and settings by which they are asked.
#[derive(Clone, Copy)]
pub(crate) struct WebClient<'a> {
    pub(crate) fetcher: &'a Fetcher,
    pub(crate) settings: &'a SourceSettings,
}

/// The requests to a server that is not a registry for one resolve or read. Credentials are read
/// once, and again for the next one.
pub(crate) struct WebSession<'a> {
    pub(crate) settings: &'a SourceSettings,
    pub(crate) server: AskedServer,
    login: Option<Login>,
    /// Fields from a header file. They may hold secrets.
    fields: HeaderMap,
}

impl AskedServer {
    pub(crate) fn new(fetcher: Fetcher, place: ServerPlace) -> Self {
        Self {
            fetcher,
            place,
            secrets: Mutex::default(),
        }
    }

    /// Returns the credentials for a path of the server, if any are configured. No error repeats
    /// them from now on.
    pub(crate) async fn login(
        &self,
        settings: &SourceSettings,
        path: &str,
    ) -> Result<Option<Login>, Error> {
        let SourceSettings {
            logins, auth_files, ..
        } = settings;
        let found = find_login(logins, auth_files, &self.place.name, path).await?;
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

    /// Sends a request to a configured URL and follows redirects. Returns any other answer,
    /// whatever its status.
    pub(crate) async fn follow(
        &self,
        url: Url,
        request: &RequestSpec,
    ) -> Result<FetchResponse, Error> {
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
    pub(crate) fn failed_at(
        &self,
        response: &FetchResponse,
        fault: impl Into<ServerFault>,
    ) -> Error {
        self.report(Some(response.peer.clone()), fault.into())
    }

    /// Reports the failure of an exchange, if it failed.
    pub(crate) fn fetched<T>(&self, fetched: Result<T, FailedFetch>) -> Result<T, Error> {
        fetched.map_err(|failed| self.report(Some(failed.peer), failed.error.into()))
    }

    /// Reports a failure, of another server if `at` is one. Its text is cleaned of what the server
    /// chose.
    fn report(&self, at: Option<Peer>, fault: ServerFault) -> Error {
        let secrets = self.secrets.lock();
        let at = match at {
            Some(peer) if peer.host != self.place.host || peer.proxy.is_some() => Some(Peer {
                host: secrets.show(&peer.host),
                ..peer
            }),
            _ => None,
        };
        Error::Server(Box::new(ServerFailure {
            place: self.place.clone(),
            at,
            fault: fault.with_shown_text(|text| secrets.show(text)),
            attempts: AttemptCount::default(),
        }))
    }

    /// Replaces an error whose text repeats a secret that was sent.
    pub(crate) fn redacted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.without(&self.secrets.lock()))
    }
}

impl<'a> WebSession<'a> {
    /// Reads the credentials for the host and path of `url`. Sends nothing.
    pub(crate) async fn open(client: WebClient<'a>, url: &Url) -> Result<Self, Error> {
        let settings = client.settings;
        let host = authority(url);
        let path = url.path().trim_matches('/');
        let place = ServerPlace {
            text: url.to_string(),
            name: host.clone(),
            host: host.clone(),
            is_registry: false,
            failed_mirrors: Vec::new(),
        };
        let server = AskedServer::new(client.fetcher.with_own_traffic(None), place);
        let login = server.login(settings, path).await?;
        let fields = settings.header_files.read(&host)?;
        for value in fields.values() {
            if let Ok(text) = value.to_str() {
                // Of `Bearer TOKEN` the token alone, which is in the whole too.
                let secret = text.rsplit(' ').next().unwrap_or(text);
                server.secrets.lock().add(secret);
            }
        }
        Ok(Self {
            settings,
            server,
            login,
            fields,
        })
    }

    /// Makes one attempt at a request. Returns a success, or a 304 if the request has a condition.
    pub(crate) async fn send(
        &self,
        url: &Url,
        request: RequestSpec,
    ) -> Result<FetchResponse, Error> {
        let is_conditional = request.headers.contains_key(IF_NONE_MATCH);
        let authorized = self.authorize(request);
        let response = self.server.follow(url.clone(), &authorized).await?;
        let login = self.login.as_ref().map(|login| login.origin.clone());
        let fault = match response.status() {
            status if status.is_success() && is_web_page(&response) => ServerFault::WebPage,
            StatusCode::OK => return Ok(response),
            StatusCode::NOT_MODIFIED if is_conditional => return Ok(response),
            // No credentials went to another server, so its refusal says nothing about them.
            StatusCode::UNAUTHORIZED if response.is_home => ServerFault::Unauthorized(login),
            StatusCode::FORBIDDEN if response.is_home => ServerFault::Forbidden(login),
            StatusCode::NOT_FOUND | StatusCode::GONE => ServerFault::NotFound {
                what: "such file".to_owned(),
            },
            status => FetchError::from_status(status, response.headers()).into(),
        };
        Err(self.server.failed_at(&response, fault))
    }

    /// Adds the credentials for the configured server.
    pub(crate) fn authorize(&self, mut request: RequestSpec) -> RequestSpec {
        // With the first request: servers of private files answer 404, and not 401, to an anonymous
        // one.
        if let Some(login) = &self.login {
            request = match login.identity_token() {
                Some(token) => request.with_bearer_auth(token),
                None => request.with_basic_auth(&login.user, &login.password),
            };
        }
        // The file for this one host wins over a credential file for all.
        request.credentials.extend(self.fields.clone());
        request
    }
}

/// Returns true for HTML, which no source is made of.
pub(crate) fn is_web_page(response: &FetchResponse) -> bool {
    let Some(media_type) = response.headers().get(CONTENT_TYPE) else {
        return false;
    };
    let media_type = media_type.as_bytes().to_ascii_lowercase();
    media_type.starts_with(b"text/html")
}
