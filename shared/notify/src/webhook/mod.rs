//! Webhooks, signed and sent as Standard Webhooks 1.0.0 says.

mod client;
mod secret;

use std::{
    collections::BTreeSet,
    fmt,
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use layout::CatalogName;
use reqwest::{
    Client, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap},
};
use retry::retry_after;

pub use self::secret::{SecretError, SecretPlace};
use crate::{Event, Receiver, SendError};

/// A receiver that is told by an HTTP POST.
pub struct Webhook {
    name: String,
    url: Url,
    secret: SecretPlace,
    /// All, if there are none.
    catalogs: BTreeSet<CatalogName>,
    client: OnceLock<Client>,
}

/// Why a webhook cannot be used as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// Not the URL of a web server. It is not quoted, as it may hold a password.
    #[error("url is not an http or https URL with a host")]
    Url,
    /// No secret to sign with.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// An answer other than 2xx. Its body is not read.
#[derive(Debug, thiserror::Error)]
#[error("it answered {0}")]
struct Answered(StatusCode);

impl Webhook {
    /// A webhook by its name, URL and secrets. The secrets are read anew for each event, but have to be there now too.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn new(name: &str, url: &str, secret: SecretPlace) -> Result<Self, Vec<WebhookError>> {
        let url = Url::parse(url).ok().filter(is_web);
        let mut problems = Vec::new();
        problems.extend(secret.read().err().map(WebhookError::Secret));
        match url {
            Some(url) if problems.is_empty() => Ok(Self {
                name: name.to_owned(),
                url,
                secret,
                catalogs: BTreeSet::new(),
                client: OnceLock::new(),
            }),
            Some(_) => Err(problems),
            None => {
                problems.insert(0, WebhookError::Url);
                Err(problems)
            }
        }
    }

    /// The same, told of these catalogs only, if there are any.
    #[must_use]
    pub fn only(self, catalogs: impl IntoIterator<Item = CatalogName>) -> Self {
        Self {
            catalogs: catalogs.into_iter().collect(),
            ..self
        }
    }

    /// The time in the signature is that of the attempt, not of the event.
    async fn post(&self, event: &Event) -> Result<(), SendError> {
        let secrets = self.secret.read().map_err(|error| SendError::Refused(error.into()))?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let timestamp = since.as_secs();
        let body = event.to_json();
        let signature = secrets.sign(&event.id, timestamp, &body);
        let client = self.client.get_or_init(|| client::new(self.url.scheme() == "https"));
        let request = client
            .post(self.url.clone())
            .header(CONTENT_TYPE, Event::MEDIA_TYPE)
            .header("webhook-id", &event.id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signature)
            .body(body);
        match request.send().await {
            Ok(response) => judge(response.status(), response.headers()),
            // The URL may hold a password.
            Err(error) => Err(SendError::temporary(error.without_url())),
        }
    }
}

#[async_trait]
impl Receiver for Webhook {
    fn name(&self) -> &str {
        &self.name
    }

    fn wants(&self, catalog: &CatalogName) -> bool {
        self.catalogs.is_empty() || self.catalogs.contains(catalog)
    }

    async fn send(&self, event: &Event) -> Result<(), SendError> {
        self.post(event).await
    }
}

/// Only where it leads: a user, a password, a path and a query may all be secret.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("name", &self.name)
            .field("origin", &self.url.origin().ascii_serialization())
            .field("secret", &self.secret)
            .field("catalogs", &self.catalogs)
            .finish_non_exhaustive()
    }
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

/// What a status means (Standard Webhooks 1.0.0, "Deliverability and reliability").
fn judge(status: StatusCode, headers: &HeaderMap) -> Result<(), SendError> {
    if status.is_success() {
        return Ok(());
    }
    let answered = Box::new(Answered(status));
    Err(match status {
        StatusCode::GONE => SendError::Permanent(answered),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => later(answered, headers),
        status if status.is_server_error() => later(answered, headers),
        _ => SendError::Refused(answered),
    })
}

fn later(answered: Box<Answered>, headers: &HeaderMap) -> SendError {
    SendError::Temporary {
        retry_after: retry_after(headers),
        source: answered,
    }
}
