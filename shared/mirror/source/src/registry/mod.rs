//! Registries: the few requests of the distribution API that reading and pushing need, with
//! authentication, retries and limits.
//!
//! | a registry may | result |
//! |---|---|
//! | lie about a digest, a length, a type or an encoding | only bytes with the right digest are used; a web page in place of a manifest is named |
//! | compress a body though nothing asks for it | documents are decoded from gzip within the limits; another coding, and one of a layer, is named |
//! | send without end: signatures, pages, headers, bodies, single bytes | limits of the descriptor and of `ImageLimits`, read time-out, minimum throughput, time-outs of resolve and pull |
//! | redirect, or name a token realm | the rules of `fetch`; at most 5 redirects |
//! | link to further pages of signatures | the next page must be on the registry and not read before; each counts as one of `signatures` |
//! | ask for credentials | only the registry itself may ask; credentials go to its origin or its realm, never along with a redirect and never back after one |
//! | name a token service that gives no token | named, also for a 404; the next pull is challenged again |
//! | answer "later" for ever | the retry schedule; a longer `Retry-After` is reported |
//! | have a bad certificate or no TLS | an error with advice; never plain HTTP in its place |
//! | put text into errors | of bodies only the first message for a refused push is quoted; it, hosts and digests are cut and cleaned; what repeats a secret is withheld |

mod auth;
mod inventory;
mod objects;
mod push;
mod referrers;
mod registries;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use fetch::{FetchError, FetchResponse, Login, RedirectRefusal, RequestSpec};
use oci::NamedLimit;
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use tokio::sync::OnceCell;

use crate::server::{AskedServer, is_web_page};
use crate::{Error, ServerFault, SourceSettings};

use auth::{AuthState, Challenge};

pub use inventory::{Deletion, ManifestLinks};
pub use push::Pushed;
pub(crate) use push::{check_push, check_sparse, push};
pub(crate) use registries::Registries;

/// Authentication for all repositories, shared by all pulls of a process.
pub(crate) type AuthStates = Arc<Mutex<BTreeMap<AuthKey, SharedAuthState>>>;

/// Hosts that the rules call insecure, each with true if it speaks plain HTTP. Shared by all pulls of
/// a process.
pub(crate) type InsecureHosts = Arc<Mutex<BTreeMap<String, bool>>>;

/// Locked while a token is fetched, so that concurrent requests share one token.
type SharedAuthState = Arc<tokio::sync::Mutex<AuthState>>;

/// Host, and the scope of its tokens.
type AuthKey = (String, String);

/// One resolve, read or push of one repository. Credentials are read at most once in a session, and
/// again in the next.
pub(crate) struct Session {
    pub(crate) settings: Arc<SourceSettings>,
    pub(crate) server: AskedServer,
    /// URL of the repository in the API, ending in a slash.
    base: Url,
    repository: String,
    /// Scope of tokens (CNCF distribution, "Token Scope Documentation").
    scope: String,
    auth: SharedAuthState,
    login: OnceCell<Option<Login>>,
}

/// A request to the registry's API.
pub(crate) struct ApiRequest {
    pub(crate) url: Url,
    /// All but the credentials.
    pub(crate) spec: RequestSpec,
    /// The object in words, for errors.
    pub(crate) what: String,
}

impl Session {
    /// Returns the credentials for this repository, if any are configured. A broken configuration
    /// is an error: an anonymous request would only lead to a 401 that hides the cause.
    async fn login(&self) -> Result<Option<&Login>, Error> {
        let login = self
            .login
            .get_or_try_init(|| self.server.login(&self.settings, &self.repository));
        Ok(login.await?.as_ref())
    }

    /// Returns the URL of a path below the repository.
    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path()));
        url
    }

    /// Returns the URL that an answer from `from` names. Credentials go there, so it must be on the
    /// registry itself.
    fn own_url(&self, from: &Url, named: &str) -> Result<Url, FetchError> {
        let Ok(to) = from.join(named) else {
            return Err(RedirectRefusal::NotUrl.error(from));
        };
        if let Some(reason) = fetch::unusable(&to) {
            return Err(reason.error(&to));
        }
        if to.origin() != self.base.origin() {
            return Err(RedirectRefusal::OtherServer.error(&to));
        }
        Ok(to)
    }

    /// Sends until a 2xx answer, a permanent failure or the end of the retries.
    pub(crate) async fn send(&self, request: &ApiRequest) -> Result<FetchResponse, Error> {
        self.server.retries().run(|| self.attempt(request)).await
    }

    /// Makes one attempt. A challenge makes it two requests: the second one answers it.
    pub(crate) async fn attempt(&self, request: &ApiRequest) -> Result<FetchResponse, Error> {
        let mut sent = self.authorize(request.spec.clone()).await?;
        let mut response = self.server.follow(request.url.clone(), &sent).await?;
        // A challenge of another server, such as a CDN, could ask for the password of the registry.
        if response.is_home && self.is_challenged(&response, &sent).await? {
            self.accept_challenge(&sent, &response).await?;
            sent = self.authorize(request.spec.clone()).await?;
            response = self.server.follow(request.url.clone(), &sent).await?;
        }
        if push::is_refusal(&request.spec, &response) {
            // As after a refused read: an operator may just have granted more.
            self.forget_token();
            let status = response.status();
            let words = push::words(response).await;
            return Err(self
                .server
                .failed(ServerFault::PushRefused { status, words }));
        }
        let is_document = request.spec.headers.contains_key(ACCEPT);
        let fault = match response.status() {
            // The type of a blob does not matter, because its digest is checked.
            status if status.is_success() && is_document && is_web_page(&response) => {
                ServerFault::WebPage
            }
            status if status.is_success() => return Ok(response),
            StatusCode::UNAUTHORIZED if response.is_home => {
                return Err(self.refused(ServerFault::Unauthorized).await);
            }
            StatusCode::FORBIDDEN if response.is_home && sent.credentials.is_empty() => {
                // It says nothing about credentials that were not sent.
                return Err(self.refused(|_| ServerFault::Forbidden(None)).await);
            }
            StatusCode::FORBIDDEN if response.is_home => {
                return Err(self.refused(ServerFault::Forbidden).await);
            }
            // No credentials went to another server, so its refusal says nothing about them.
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                FetchError::Status(status).into()
            }
            status => self.status_fault(status, response.headers(), &request.what),
        };
        Err(self.server.failed_at(&response, fault))
    }

    /// Returns true if credentials may help. Some registries answer 403 or 404 with a challenge to
    /// an anonymous request.
    async fn is_challenged(
        &self,
        response: &FetchResponse,
        sent: &RequestSpec,
    ) -> Result<bool, Error> {
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED
            || !status.is_client_error()
            || !sent.credentials.is_empty()
        {
            return Ok(status == StatusCode::UNAUTHORIZED);
        }
        Ok(Challenge::from_headers(response.headers()).is_some() && self.login().await?.is_some())
    }

    /// Reports a 401 or 403. `fault` gets the origin of the configured credentials.
    pub(crate) async fn refused(&self, fault: fn(Option<String>) -> ServerFault) -> Error {
        // Also after a 403: a cached token has the rights of its time, and an operator may just
        // have granted more.
        self.forget_token();
        match self.login().await {
            Ok(login) => {
                let origin = login.map(|login| login.origin.clone());
                self.server.failed(fault(origin))
            }
            Err(error) => error,
        }
    }

    /// Sorts a status that is not a success.
    pub(crate) fn status_fault(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        what: &str,
    ) -> ServerFault {
        match status {
            StatusCode::NOT_FOUND => ServerFault::NotFound {
                what: what.to_owned(),
            },
            StatusCode::BAD_REQUEST if self.base.scheme() == "http" => {
                ServerFault::PlainHttpRefused
            }
            _ => FetchError::from_status(status, headers).into(),
        }
    }

    /// Reads a whole body into memory.
    pub(crate) async fn body(
        &self,
        response: FetchResponse,
        limit: NamedLimit,
        what: &str,
    ) -> Result<Bytes, Error> {
        match response.bytes(limit.value).await {
            Err(failed) if matches!(failed.error, FetchError::TooLarge { .. }) => {
                let name = &self.server.place.name;
                let place = format!("{what} from {name}/{}", self.repository);
                Err(limit.exceeded(place).into())
            }
            read => self.server.fetched(read),
        }
    }
}

impl ApiRequest {
    pub(crate) fn new(method: Method, url: Url, what: String) -> Self {
        let spec = RequestSpec::new(method);
        Self { url, spec, what }
    }

    /// Asks for a document of one of these media types.
    pub(crate) fn accepting(mut self, types: &'static str) -> Self {
        self.spec
            .headers
            .insert(ACCEPT, HeaderValue::from_static(types));
        self
    }
}

/// Turns the answer that there is no such manifest, tag or blob into `None`.
pub(crate) fn if_found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::Server(error)) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
