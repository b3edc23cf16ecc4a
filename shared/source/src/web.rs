//! Servers that are not registries: one URL, with credentials, retries and limits.
//!
//! | a server may | result |
//! |---|---|
//! | redirect | the rules of `fetch`; credentials go to the host of the configured URL only |
//! | answer "later" | the retry schedule; a longer `Retry-After` is reported |
//! | answer with a login page | named as one |
//! | put text into errors | no bodies are quoted; hosts are cut and cleaned; what repeats a secret is withheld |

use fetch::{FetchError, FetchResponse, Login, RequestSpec, authority};
use reqwest::header::{CONTENT_TYPE, HeaderMap, IF_NONE_MATCH};
use reqwest::{StatusCode, Url};

use crate::{Error, ServerFault, ServerPlace, SourceSettings, Sources, server::AskedServer};

/// The requests for one resolve or read. Credentials are read once, and again for the next one.
pub(crate) struct WebSession<'a> {
    pub(crate) settings: &'a SourceSettings,
    pub(crate) server: AskedServer,
    login: Option<Login>,
    /// Fields from a header file. They may hold secrets.
    fields: HeaderMap,
}

impl<'a> WebSession<'a> {
    /// Reads the credentials for the host and path of `url`. Sends nothing.
    pub(crate) async fn open(sources: &'a Sources, url: &Url) -> Result<Self, Error> {
        let settings = &*sources.settings;
        let host = authority(url);
        let path = url.path().trim_matches('/');
        let place = ServerPlace {
            text: url.to_string(),
            name: host.clone(),
            host: host.clone(),
            is_registry: false,
            failed_mirrors: Vec::new(),
        };
        let server = AskedServer::new(sources.fetcher.with_own_traffic(None), place);
        let login = server.login(settings, path).await?;
        let fields = settings.header_files.read(&host)?;
        for value in fields.values().filter_map(|value| value.to_str().ok()) {
            // Of `Bearer TOKEN` the token alone, which is in the whole too.
            server.secrets.lock().add(value.rsplit(' ').next().unwrap_or(value));
        }
        Ok(Self {
            settings,
            server,
            login,
            fields,
        })
    }

    /// Makes one attempt at a request. Returns a success, or a 304 if the request has a condition.
    pub(crate) async fn send(&self, url: &Url, request: RequestSpec) -> Result<FetchResponse, Error> {
        let is_conditional = request.headers.contains_key(IF_NONE_MATCH);
        let request = self.authorize(request);
        let response = self.server.follow(url.clone(), &request).await?;
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
    pub(crate) fn authorize(&self, request: RequestSpec) -> RequestSpec {
        let token = self.login.as_ref().and_then(Login::identity_token);
        // With the first request: servers of private files answer 404, and not 401, to an anonymous one.
        let mut request = match (&self.login, token) {
            (None, _) => request,
            (Some(_), Some(token)) => request.with_bearer_auth(token),
            (Some(login), None) => request.with_basic_auth(&login.user, &login.password),
        };
        // The file for this one host wins over a credential file for all.
        request.credentials.extend(self.fields.clone());
        request
    }
}

/// Returns true for HTML, which no source is made of.
pub(crate) fn is_web_page(response: &FetchResponse) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE);
    media_type.is_some_and(|value| value.as_bytes().to_ascii_lowercase().starts_with(b"text/html"))
}
