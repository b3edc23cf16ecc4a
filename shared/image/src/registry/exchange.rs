//! One request with all that belongs to it: credentials, redirects, retries.

use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RANGE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use retry::retry_after;
use tokio::time::sleep;

use crate::error::{Error, Limit};
use crate::registry::grant::Pass;
use crate::registry::hop::{self, Hop, Refusal};
use crate::registry::pace::Paced;
use crate::registry::waits::Waits;
use crate::registry::{Fault, RegistryError, Session};

/// A CDN in front of a CDN is two; more is a loop.
const MOST_REDIRECTS: usize = 5;

/// A request to the registry's API.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// Under the repository; with a slash in front, under the registry.
    pub(crate) path: String,
    pub(crate) accept: Option<&'static str>,
    /// The first byte wanted, if not all are.
    pub(crate) from: u64,
    /// What it is about, for people.
    pub(crate) what: &'a str,
}

/// An answer, and whether it is the registry's own.
pub(crate) struct Answer {
    pub(crate) response: Response,
    is_home: bool,
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
        let RegistryError { at, fault, .. } = *error;
        let delay = waits.after(fault).map_err(|fault| self.failed_by(at, fault))?;
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
        let mut answer = self.follow(ask, &pass).await?;
        if answer.is_home && answer.response.status() == StatusCode::UNAUTHORIZED {
            let sender = self.client.0.http.sender(&answer.response);
            self.challenged(&pass, answer.response.headers(), sender).await?;
            let pass = self.pass().await?;
            answer = self.follow(ask, &pass).await?;
        }
        let Answer { response, is_home } = answer;
        match response.status() {
            status if status.is_success() && is_page(&response, ask) => {
                Err(self.failed_at(response.url(), Fault::Page))
            }
            status if status.is_success() => Ok(response),
            StatusCode::UNAUTHORIZED if is_home => Err(self.refused(false).await),
            StatusCode::FORBIDDEN if is_home => Err(self.refused(true).await),
            // Elsewhere nothing was sent that could be refused: a challenge is only the registry's to make.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(self.failed_at(response.url(), Fault::Status(response.status())))
            }
            status => {
                let fault = self.fault(status, response.headers(), ask.what);
                Err(self.failed_at(response.url(), fault))
            }
        }
    }

    async fn follow(&self, ask: &Ask<'_>, pass: &Pass) -> Result<Answer, Error> {
        let with_pass = |hop: &Hop, is_home| {
            let request = self.request(ask, hop);
            if is_home { pass.apply(request) } else { request }
        };
        self.follow_from(self.home(&ask.path)?, with_pass).await
    }

    /// Goes where redirects lead. `request` is told whether it goes to where all began.
    pub(crate) async fn follow_from(
        &self,
        home: Hop,
        request: impl Fn(&Hop, bool) -> RequestBuilder,
    ) -> Result<Answer, Error> {
        let mut hop = home.clone();
        // Who once left does not come back with credentials: the way back was chosen by somebody else.
        let mut is_home = true;
        for _ in 0..=MOST_REDIRECTS {
            let response = self.exchange(&hop, request(&hop, is_home)).await?;
            if !is_redirect(response.status()) {
                return Ok(Answer { response, is_home });
            }
            let sender = self.client.0.http.sender(&response);
            let next = hop.redirect(response.headers(), sender, self.settings());
            hop = next.map_err(|fault| self.failed_at(response.url(), fault))?;
            is_home &= hop::same_origin(&home.url, &hop.url);
        }
        Err(self.failed(hop::refused(&hop.url, Refusal::TooMany)))
    }

    fn request(&self, ask: &Ask<'_>, hop: &Hop) -> RequestBuilder {
        let mut request = self.start(ask.method.clone(), hop);
        if let Some(accept) = ask.accept {
            request = request.header(ACCEPT, accept);
        }
        if ask.from > 0 {
            request = request.header(RANGE, format!("bytes={}-", ask.from));
        }
        request
    }

    /// A request that goes there and no nearer.
    pub(crate) fn start(&self, method: Method, hop: &Hop) -> RequestBuilder {
        let client = self.client.0.http.to(&hop.url, hop.nearest);
        client.request(method, hop.url.clone())
    }

    /// The bare exchange.
    pub(crate) async fn exchange(&self, hop: &Hop, request: RequestBuilder) -> Result<Response, Error> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let sent = request.send().await;
        sent.map_err(|error| self.failed_at(&hop.url, Fault::of(error)))
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

    /// The next piece of a body.
    pub(crate) async fn chunk(&self, paced: &mut Paced<'_>, response: &mut Response) -> Result<Option<Bytes>, Error> {
        let chunk = paced.chunk(response).await;
        chunk.map_err(|fault| self.failed_at(response.url(), fault))
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
        let mut paced = Paced::new(&self.settings().pace);
        while let Some(chunk) = self.chunk(&mut paced, &mut response).await? {
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

/// A manifest is never a page for people; a blob's type says nothing, it is what it hashes to.
fn is_page(response: &Response, ask: &Ask<'_>) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE);
    let media_type = media_type.map(|value| value.as_bytes().to_ascii_lowercase());
    ask.accept.is_some() && media_type.is_some_and(|value| value.starts_with(b"text/html"))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}
