//! One request with credentials, redirects and retries.

use bytes::Bytes;
use fetch::{FetchError, FetchResponse, RequestSpec, RetryWaits};
use oci::LimitExceeded;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};

use crate::blob_source::NamedLimit;
use crate::error::Error;
use crate::registry::auth_state::RequestAuth;
use crate::registry::{RegistryFailure, RegistryFault, Session};

/// A request to the registry's API.
pub(crate) struct ApiRequest<'a> {
    pub(crate) method: Method,
    /// Path below the repository; with a leading slash, below the registry.
    pub(crate) path: String,
    pub(crate) accept: Option<&'static str>,
    /// First byte of the body to send, from 0.
    pub(crate) position: u64,
    pub(crate) body: Option<RequestBody>,
    /// The object in words, for errors.
    pub(crate) what: &'a str,
}

/// Bytes that a request sends.
pub(crate) struct RequestBody {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Bytes,
}

impl<'a> ApiRequest<'a> {
    pub(crate) fn get(path: String, what: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            accept: None,
            position: 0,
            body: None,
            what,
        }
    }

    fn spec(&self) -> RequestSpec {
        let mut spec = RequestSpec::new(self.method.clone()).from_position(self.position);
        if let Some(accept) = self.accept {
            spec.headers.insert(ACCEPT, HeaderValue::from_static(accept));
        }
        if let Some(body) = &self.body {
            spec.headers
                .insert(CONTENT_TYPE, HeaderValue::from_static(body.media_type));
            spec.body = Some(body.bytes.clone());
        }
        spec
    }
}

impl Session {
    /// Sends until a 2xx answer, a permanent failure or the end of the retries.
    pub(crate) async fn send(&self, request: &ApiRequest<'_>) -> Result<FetchResponse, Error> {
        let mut waits = self.retry_waits();
        loop {
            match self.attempt(request).await {
                Ok(response) => return Ok(response),
                Err(error) => self.pause(&mut waits, error).await?,
            }
        }
    }

    pub(crate) fn retry_waits(&self) -> RetryWaits {
        RetryWaits::new(&self.settings().http.retry)
    }

    /// Waits before the next attempt. Returns the error if there is no next attempt.
    pub(crate) async fn pause(&self, waits: &mut RetryWaits, error: Error) -> Result<(), Error> {
        let Error::Registry(error) = error else {
            return Err(error);
        };
        let RegistryFailure { at, fault, .. } = *error;
        let RegistryFault::Fetch(fault) = fault else {
            return Err(self.failed_by(at, fault));
        };
        let delay = waits.wait_after(fault);
        let delay = delay.map_err(|fault| self.failed_by(at.clone(), fault.into()))?;
        tracing::debug!(
            registry = self.registry,
            repository = self.repository,
            delay_ms = delay.as_millis(),
            "retrying the request to the registry"
        );
        let paused = self.fetcher.pause(delay).await;
        paused.map_err(|fault| self.failed_by(at, fault.into()))
    }

    /// Makes one attempt. A 401 makes it two requests: the second one answers the challenge.
    pub(crate) async fn attempt(&self, request: &ApiRequest<'_>) -> Result<FetchResponse, Error> {
        let auth = self.request_auth().await?;
        let mut response = self.follow(request, &auth).await?;
        // A challenge of another server, such as a CDN, could ask for the password of the registry.
        if response.is_home && response.status() == StatusCode::UNAUTHORIZED {
            self.accept_challenge(&auth, response.headers(), response.sender)
                .await?;
            let auth = self.request_auth().await?;
            response = self.follow(request, &auth).await?;
        }
        match response.status() {
            status if status.is_success() && is_web_page(&response, request) => {
                Err(self.failed_at(response.url(), RegistryFault::WebPage))
            }
            status if status.is_success() => Ok(response),
            StatusCode::UNAUTHORIZED if response.is_home => Err(self.refused(false).await),
            StatusCode::FORBIDDEN if response.is_home => Err(self.refused(true).await),
            // No credentials went to another server, so its refusal says nothing about them.
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(self.failed_at(response.url(), FetchError::Status(status).into()))
            }
            status => {
                let fault = self.status_fault(status, response.headers(), request.what);
                Err(self.failed_at(response.url(), fault))
            }
        }
    }

    async fn follow(&self, request: &ApiRequest<'_>, auth: &RequestAuth) -> Result<FetchResponse, Error> {
        let home = self.home(&request.path)?;
        let followed = self.fetcher.follow(&home, &auth.apply(request.spec())).await;
        followed.map_err(|error| self.fetch_failed(error))
    }

    /// Reports a 401 or 403 to fresh credentials.
    pub(crate) async fn refused(&self, forbidden: bool) -> Error {
        // Also after a 403: a cached token has the rights of its time, and an operator may just have granted more.
        self.forget_token();
        let login = match self.login().await {
            Ok(login) => login.map(|login| login.origin.clone()),
            Err(error) => return error,
        };
        self.failed(if forbidden {
            RegistryFault::Forbidden { login }
        } else {
            RegistryFault::Unauthorized { login }
        })
    }

    /// Sorts a status that is not a success.
    pub(crate) fn status_fault(&self, status: StatusCode, headers: &HeaderMap, what: &str) -> RegistryFault {
        match status {
            StatusCode::NOT_FOUND => RegistryFault::NotFound { what: what.to_owned() },
            StatusCode::BAD_REQUEST if self.speaks_plain_http() => RegistryFault::PlainHttpRefused,
            _ => FetchError::from_status(status, headers).into(),
        }
    }

    /// Reads a whole body into memory.
    pub(crate) async fn body(&self, response: FetchResponse, limit: NamedLimit, what: &str) -> Result<Bytes, Error> {
        let read = response.bytes(limit.bytes).await;
        read.map_err(|failed| match failed.error {
            FetchError::TooLarge { limit: bytes } => Error::Limit(LimitExceeded {
                name: limit.name,
                limit: bytes,
                place: format!("{what} from {}/{}", self.registry, self.repository),
            }),
            _ => self.fetch_failed(failed),
        })
    }

    pub(crate) fn manifest_limit(&self) -> NamedLimit {
        NamedLimit::manifest(self.limits())
    }
}

/// Returns true for HTML in place of a manifest. A blob's type does not matter, because its digest is checked.
fn is_web_page(response: &FetchResponse, request: &ApiRequest<'_>) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE);
    let media_type = media_type.map(|value| value.as_bytes().to_ascii_lowercase());
    request.accept.is_some() && media_type.is_some_and(|value| value.starts_with(b"text/html"))
}
