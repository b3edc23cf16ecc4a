//! Webhooks, signed and sent as Standard Webhooks 1.0.0 specifies.

mod secret;

use std::{
    collections::BTreeSet,
    fmt,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use fetch::{FetchSettings, FetchSettingsError, Fetcher, RedirectTarget, RequestSpec, retry_after};
use model::CatalogName;
use reqwest::{
    Method, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue, InvalidHeaderValue},
};

pub use self::secret::SecretLocation;
use crate::{Event, Receiver, SendError};

/// A receiver of events by HTTP POST.
#[derive(Clone)]
pub struct Webhook {
    name: String,
    url: Url,
    secret: SecretLocation,
    /// Catalogs to send events of; empty means all.
    pub catalogs: BTreeSet<CatalogName>,
    fetcher: Fetcher,
}

/// An error in the configuration of a webhook. No message quotes a secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WebhookError(pub(crate) String);

impl Webhook {
    /// Creates a webhook for the events of all catalogs. The secrets are read again for each event, but must exist now too.
    ///
    /// # Errors
    /// All errors in the arguments.
    pub fn new(name: &str, url: &str, secret: SecretLocation) -> Result<Self, Vec<WebhookError>> {
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let url = Url::parse(url).ok().filter(is_web);
        // The text is not quoted, because it may hold a password.
        let url = url.ok_or_else(|| WebhookError("url is not an http or https URL with a host".to_owned()));
        match (url, secret.read()) {
            (Ok(url), Ok(_)) => Ok(Self {
                name: name.to_owned(),
                url,
                secret,
                catalogs: BTreeSet::new(),
                fetcher: Fetcher::new(FetchSettings::default()).expect("the default settings can be used"),
            }),
            (url, read) => Err(url.err().into_iter().chain(read.err()).collect()),
        }
    }

    /// Trusts these CA bundles besides the system's.
    ///
    /// # Errors
    /// CA bundles that cannot be used.
    pub fn trusting(self, ca_files: &[PathBuf]) -> Result<Self, FetchSettingsError> {
        self.fetcher.trust_ca_files(ca_files)?;
        Ok(self)
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
        let secrets = self.secret.read().map_err(SendError::refused)?;
        // The time of the attempt and not of the event: a receiver refuses old timestamps.
        let timestamp = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let body = event.to_json();
        let signature = secrets.sign(&event.id, timestamp, &body);
        let request = RequestSpec {
            headers: headers(&event.id, timestamp, &signature).map_err(SendError::refused)?,
            body: Some(body),
            ..RequestSpec::new(Method::POST)
        };
        let target = RedirectTarget::configured(self.url.clone()).map_err(SendError::refused)?;
        // `send` and not `follow`: a redirect is a failure (Standard Webhooks 1.0.0, "Deliverability and reliability").
        match self.fetcher.send(&target, &request).await {
            Ok(response) => outcome(response.status(), response.headers()),
            Err(failed) => Err(SendError::temporary(failed)),
        }
    }
}

/// Prints scheme, host and port of the URL only: the user, the password, the path and the query may be secret.
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

fn headers(id: &str, timestamp: u64, signature: &str) -> Result<HeaderMap, InvalidHeaderValue> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(Event::MEDIA_TYPE));
    headers.insert("webhook-id", HeaderValue::try_from(id)?);
    headers.insert("webhook-timestamp", HeaderValue::from(timestamp));
    headers.insert("webhook-signature", HeaderValue::try_from(signature)?);
    Ok(headers)
}

/// Sorts a status (Standard Webhooks 1.0.0, "Deliverability and reliability").
fn outcome(status: StatusCode, headers: &HeaderMap) -> Result<(), SendError> {
    // Request Timeout, Too Early, Too Many Requests.
    let is_busy = matches!(status.as_u16(), 408 | 425 | 429);
    // The body of the answer is not read.
    let source = format!("it answered {status}").into();
    match status {
        _ if status.is_success() => Ok(()),
        // The specification asks to disable the endpoint after a 410. Here the event is dropped, and an operator
        // removes the webhook.
        StatusCode::GONE => Err(SendError::Permanent(source)),
        _ if is_busy || status.is_server_error() => Err(SendError::Temporary {
            retry_after: retry_after(headers),
            source,
        }),
        _ => Err(SendError::Refused(source)),
    }
}
