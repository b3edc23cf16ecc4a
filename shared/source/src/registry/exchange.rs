//! One request with credentials, redirects and retries.

use bytes::Bytes;
use fetch::{FetchError, FetchResponse, RequestSpec};
use oci::NamedLimit;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode, Url};

use crate::registry::Session;
use crate::registry::auth::Challenge;
use crate::web::is_web_page;
use crate::{Error, ServerFault};

/// A request to the registry's API.
pub(crate) struct ApiRequest {
    pub(crate) url: Url,
    /// All but the credentials.
    pub(crate) spec: RequestSpec,
    /// The object in words, for errors.
    pub(crate) what: String,
}

impl ApiRequest {
    pub(crate) fn new(method: Method, url: Url, what: String) -> Self {
        let spec = RequestSpec::new(method);
        Self { url, spec, what }
    }

    /// Asks for a document of one of these media types.
    pub(crate) fn accepting(mut self, types: &'static str) -> Self {
        self.spec.headers.insert(ACCEPT, HeaderValue::from_static(types));
        self
    }
}

impl Session {
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
        let is_document = request.spec.headers.contains_key(ACCEPT);
        let fault = match response.status() {
            // The type of a blob does not matter, because its digest is checked.
            status if status.is_success() && is_document && is_web_page(&response) => ServerFault::WebPage,
            status if status.is_success() => return Ok(response),
            StatusCode::UNAUTHORIZED if response.is_home => {
                return Err(self.refused(ServerFault::Unauthorized, true).await);
            }
            StatusCode::FORBIDDEN if response.is_home => {
                return Err(self.refused(ServerFault::Forbidden, !sent.credentials.is_empty()).await);
            }
            // No credentials went to another server, so its refusal says nothing about them.
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => FetchError::Status(status).into(),
            status => self.status_fault(status, response.headers(), &request.what),
        };
        Err(self.server.failed_at(&response, fault))
    }

    /// Returns true if credentials may help. Some registries answer 403 or 404 with a challenge to an anonymous request.
    async fn is_challenged(&self, response: &FetchResponse, sent: &RequestSpec) -> Result<bool, Error> {
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED || !status.is_client_error() || !sent.credentials.is_empty() {
            return Ok(status == StatusCode::UNAUTHORIZED);
        }
        Ok(Challenge::from_headers(response.headers()).is_some() && self.login().await?.is_some())
    }

    /// Reports a 401 or 403, to the fresh credentials if some were sent.
    pub(crate) async fn refused(&self, fault: fn(Option<String>) -> ServerFault, was_login_sent: bool) -> Error {
        // Also after a 403: a cached token has the rights of its time, and an operator may just have granted more.
        self.forget_token();
        match self.login().await {
            Ok(login) => {
                let sent = login.filter(|_| was_login_sent);
                self.server.failed(fault(sent.map(|login| login.origin.clone())))
            }
            Err(error) => error,
        }
    }

    /// Sorts a status that is not a success.
    pub(crate) fn status_fault(&self, status: StatusCode, headers: &HeaderMap, what: &str) -> ServerFault {
        match status {
            StatusCode::NOT_FOUND => ServerFault::NotFound { what: what.to_owned() },
            StatusCode::BAD_REQUEST if self.base.scheme() == "http" => ServerFault::PlainHttpRefused,
            _ => FetchError::from_status(status, headers).into(),
        }
    }

    /// Reads a whole body into memory.
    pub(crate) async fn body(&self, response: FetchResponse, limit: NamedLimit, what: &str) -> Result<Bytes, Error> {
        let place = || format!("{what} from {}/{}", self.server.place.name, self.repository);
        match response.bytes(limit.value).await {
            Err(failed) if matches!(failed.error, FetchError::TooLarge { .. }) => Err(limit.exceeded(place()).into()),
            read => self.server.fetched(read),
        }
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
