//! Servers that are not registries: one URL, with credentials, retries and limits.
//!
//! | a server may | result |
//! |---|---|
//! | redirect | the rules of `fetch`; credentials go to the host of the configured URL only |
//! | answer "later" | the retry schedule; a longer `Retry-After` is reported |
//! | answer with a login page | named as one |
//! | put text into errors | no bodies are quoted; hosts are cut and cleaned; what repeats a secret is withheld |

mod copy;

use fetch::{
    FailedFetch, FetchError, FetchResponse, Fetcher, Login, RedirectTarget, RequestSpec, Secret, SentSecrets, Traffic,
    authority, find_login,
};
use reqwest::header::{CONTENT_TYPE, HeaderMap, IF_NONE_MATCH};
use reqwest::{StatusCode, Url};

use crate::error::Error;
use crate::failure::{ServerFault, ServerPlace};
use crate::sources::Sources;

pub(crate) use copy::BodyCopy;

/// The requests for one resolve or read. Credentials are read once, and again for the next one.
pub(crate) struct WebSession {
    fetcher: Fetcher,
    place: ServerPlace,
    login: Option<Login>,
    /// Fields from a header file. They may hold secrets.
    fields: HeaderMap,
}

impl WebSession {
    /// Reads the credentials for the host and path of `url`. Sends nothing.
    pub(crate) async fn open(sources: &Sources, url: &Url) -> Result<Self, Error> {
        let settings = sources.settings();
        let host = authority(url);
        let path = url.path().trim_matches('/');
        let login = find_login(&settings.logins, &settings.auth_files, &host, path).await?;
        let session = Self {
            fetcher: sources.fetcher().with_own_traffic(None),
            place: ServerPlace {
                text: url.to_string(),
                name: host.clone(),
                host: host.clone(),
                is_registry: false,
                failed_mirrors: Vec::new(),
            },
            login,
            fields: settings.header_files.read(&host)?,
        };
        // Checked before anything is sent, because the request may carry a password.
        if url.scheme() == "http" && !settings.http.allows_plain_http(&host) {
            return Err(session.failed(ServerFault::PlainHttp));
        }
        Ok(session)
    }

    /// Makes one attempt at a request. Returns a success, or a 304 if the request has a condition.
    pub(crate) async fn send(&self, url: &Url, request: RequestSpec) -> Result<FetchResponse, Error> {
        let is_conditional = request.headers.contains_key(IF_NONE_MATCH);
        let request = self.authorize(request);
        let home = RedirectTarget::configured(url.clone()).map_err(|error| self.failed(error))?;
        let response = self.fetcher.follow(&home, &request).await;
        let response = response.map_err(|failed| self.fetch_failed(failed))?;
        match response.status() {
            status if status.is_success() && is_web_page(&response) => {
                Err(self.failed_at(&response, ServerFault::WebPage))
            }
            StatusCode::OK => Ok(response),
            StatusCode::NOT_MODIFIED if is_conditional => Ok(response),
            StatusCode::UNAUTHORIZED if response.is_home => Err(self.failed(ServerFault::Unauthorized {
                login: self.login_origin(),
            })),
            StatusCode::FORBIDDEN if response.is_home => Err(self.failed(ServerFault::Forbidden {
                login: self.login_origin(),
            })),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(self.failed_at(
                &response,
                ServerFault::NotFound {
                    what: "such file".to_owned(),
                },
            )),
            status => {
                let error = FetchError::from_status(status, response.headers());
                Err(self.failed_at(&response, error))
            }
        }
    }

    /// Adds the credentials for the configured server.
    fn authorize(&self, request: RequestSpec) -> RequestSpec {
        let mut request = match self.login.as_ref().map(|login| &login.secret) {
            // With the first request: servers of private files answer 404, and not 401, to an anonymous one.
            Some(Secret::Password { user, password }) => request.with_basic_auth(user, password),
            Some(Secret::IdentityToken(token)) => request.with_bearer_auth(token),
            None => request,
        };
        // The file for this one host wins over a credential file for all.
        request.credentials.extend(self.fields.clone());
        request
    }

    /// Returns the header fields with credentials, for a program that sends requests itself.
    pub(crate) fn credential_fields(&self) -> HeaderMap {
        self.authorize(RequestSpec::default()).credentials
    }

    /// Returns the connections, for retries.
    pub(crate) fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    /// Returns the URL as it is configured.
    pub(crate) fn shown(&self) -> &str {
        &self.place.text
    }

    /// Returns the bytes received and the requests sent so far.
    pub(crate) fn traffic(&self) -> Traffic {
        self.fetcher.traffic()
    }

    /// Replaces an error whose text repeats a secret that was sent.
    pub(crate) fn redact(&self, error: Error) -> Error {
        error.without(&self.sent_secrets())
    }

    pub(crate) fn fetch_failed(&self, failed: FailedFetch) -> Error {
        let at = Some(failed.peer);
        self.place.failed(at, failed.error.into(), &self.sent_secrets())
    }

    pub(crate) fn failed(&self, fault: impl Into<ServerFault>) -> Error {
        self.place.failed(None, fault.into(), &self.sent_secrets())
    }

    fn failed_at(&self, response: &FetchResponse, fault: impl Into<ServerFault>) -> Error {
        let at = Some(response.peer());
        self.place.failed(at, fault.into(), &self.sent_secrets())
    }

    fn login_origin(&self) -> Option<String> {
        self.login.as_ref().map(|login| login.origin.clone())
    }

    fn sent_secrets(&self) -> SentSecrets {
        let mut secrets = SentSecrets::default();
        if let Some(login) = &self.login {
            login.secret.add_to(&mut secrets);
        }
        for value in self.fields.values().filter_map(|value| value.to_str().ok()) {
            secrets.add(value);
            // Of `Bearer TOKEN` the token alone too.
            secrets.add(value.rsplit(' ').next().unwrap_or(value));
        }
        secrets
    }
}

/// Returns true for HTML, which no source is made of.
pub(crate) fn is_web_page(response: &FetchResponse) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE);
    let media_type = media_type.map(|value| value.as_bytes().to_ascii_lowercase());
    media_type.is_some_and(|value| value.starts_with(b"text/html"))
}

#[cfg(test)]
mod tests;
