//! One request with all that belongs to it: credentials, redirects, retries.

use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, HeaderMap, RANGE};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use tokio::time::sleep;

use crate::error::{Error, Limit};
use crate::registry::grant::Pass;
use crate::registry::retry::{Waits, retry_after};
use crate::registry::{Fault, Session, hop};

/// A CDN in front of a CDN is two; more is a loop.
const MOST_REDIRECTS: usize = 5;

/// A request to the registry's API.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// Under the repository.
    pub(crate) path: String,
    pub(crate) accept: Option<&'static str>,
    /// The first byte wanted, if not all are.
    pub(crate) from: u64,
    /// What it is about, for people.
    pub(crate) what: &'a str,
}

impl Session {
    /// Sends until it succeeds, fails for good or the retries are used up. Any 2xx is success.
    pub(crate) async fn send(&self, ask: &Ask<'_>) -> Result<Response, Error> {
        let mut waits = Waits::new(&self.settings().retry);
        loop {
            match self.attempt(ask).await {
                Ok(response) => return Ok(response),
                Err(error) => self.pause(&mut waits, error).await?,
            }
        }
    }

    /// Waits before the next attempt, or gives the error back if there is to be none.
    pub(crate) async fn pause(&self, waits: &mut Waits, error: Error) -> Result<(), Error> {
        let Error::Registry(error) = error else {
            return Err(error);
        };
        let delay = waits.after(error.fault).map_err(|fault| self.failed(fault))?;
        tracing::debug!(
            registry = self.registry,
            repository = self.repository,
            delay_ms = delay.as_millis(),
            "retrying"
        );
        sleep(delay).await;
        Ok(())
    }

    /// One attempt, which a 401 may make two.
    async fn attempt(&self, ask: &Ask<'_>) -> Result<Response, Error> {
        let pass = self.pass().await?;
        let mut response = self.follow(ask, &pass).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.challenged(&pass, response.headers()).await?;
            let pass = self.pass().await?;
            response = self.follow(ask, &pass).await?;
        }
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::UNAUTHORIZED => Err(self.refused(false).await),
            StatusCode::FORBIDDEN => Err(self.refused(true).await),
            status => Err(self.failed(self.fault(status, response.headers(), ask.what))),
        }
    }

    async fn follow(&self, ask: &Ask<'_>, pass: &Pass) -> Result<Response, Error> {
        let home = self.url(&ask.path)?;
        let mut url = home.clone();
        for _ in 0..=MOST_REDIRECTS {
            let request = self.request(ask, &url);
            let request = if hop::same_origin(&home, &url) {
                pass.apply(request)
            } else {
                request
            };
            let response = self.exchange(request).await?;
            if !is_redirect(response.status()) {
                return Ok(response);
            }
            url = hop::target(&url, response.headers(), self.settings()).map_err(|fault| self.failed(fault))?;
        }
        let to = url.host_str().unwrap_or("nowhere").to_owned();
        Err(self.failed(Fault::Redirect {
            to,
            why: "there are too many redirects",
        }))
    }

    fn request(&self, ask: &Ask<'_>, url: &Url) -> RequestBuilder {
        let mut request = self.client.0.http.to(url).request(ask.method.clone(), url.clone());
        if let Some(accept) = ask.accept {
            request = request.header(ACCEPT, accept);
        }
        if ask.from > 0 {
            request = request.header(RANGE, format!("bytes={}-", ask.from));
        }
        request
    }

    /// The bare exchange.
    pub(crate) async fn exchange(&self, request: RequestBuilder) -> Result<Response, Error> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        request.send().await.map_err(|error| self.failed(Fault::of(error)))
    }

    /// A 401 or 403 that fresh credentials do not help against.
    pub(crate) async fn refused(&self, forbidden: bool) -> Error {
        self.forget();
        let login = match self.login().await {
            Ok(login) => login.map(|login| login.origin.clone()),
            Err(error) => return error,
        };
        self.failed(if forbidden {
            Fault::Forbidden { login }
        } else {
            Fault::Unauthorized { login }
        })
    }

    pub(crate) fn fault(&self, status: StatusCode, headers: &HeaderMap, what: &str) -> Fault {
        let retry_after = retry_after(headers);
        match status.as_u16() {
            404 => Fault::NotFound { what: what.to_owned() },
            429 => Fault::RateLimited { retry_after },
            408 | 500 | 502 | 503 | 504 => Fault::Unavailable { status, retry_after },
            400 if self.settings().is_plain(&self.host) => Fault::PlainRefused,
            _ => Fault::Status(status),
        }
    }

    /// A whole body that must be small.
    pub(crate) async fn small_body(&self, response: Response, what: &str) -> Result<Bytes, Error> {
        let limit = ("manifestBytes", self.settings().limits.manifest_bytes);
        self.body(response, limit, what).await
    }

    /// A whole body of at most `limit` bytes.
    pub(crate) async fn body(
        &self,
        mut response: Response,
        (name, limit): (&'static str, u64),
        what: &str,
    ) -> Result<Bytes, Error> {
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(Fault::of(error)))? {
            self.count_bytes(chunk.len());
            if (body.len() + chunk.len()) as u64 > limit {
                let place = format!("{what} from {}/{}", self.registry, self.repository);
                return Err(Error::Limit(Limit { name, limit, place }));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}
