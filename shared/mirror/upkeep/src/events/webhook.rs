//! Webhooks, signed and sent as Standard Webhooks 1.0.0 specifies.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fmt, fs};

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD};
use fetch::{FetchSettings, FetchSettingsError, Fetcher, RedirectTarget, RequestSpec, retry_after};
use model::CatalogName;
use model::crypto::hmac::{HMAC_SHA256, Key, sign};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, InvalidHeaderValue};
use reqwest::{Method, StatusCode, Url};

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
pub struct WebhookError(String);

impl Webhook {
    /// Creates a webhook for the events of all catalogs. The secrets are read again for each event,
    /// but must exist now too.
    ///
    /// # Errors
    /// All errors in the arguments.
    pub fn new(name: &str, url: &str, secret: SecretLocation) -> Result<Self, Vec<WebhookError>> {
        match (web_url(url), secret.read()) {
            (Ok(url), Ok(_)) => Ok(Self {
                name: name.to_owned(),
                url,
                secret,
                catalogs: BTreeSet::new(),
                fetcher: Fetcher::new(FetchSettings::default())
                    .expect("the default settings can be used"),
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

fn web_url(text: &str) -> Result<Url, WebhookError> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        // The text is not quoted, because it may hold a password.
        _ => Err(WebhookError(
            "url: write http:// or https:// with a host, such as https://chat.example/hook"
                .to_owned(),
        )),
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
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let timestamp = since.unwrap_or_default().as_secs();
        let body = event.to_json();
        let signature = secrets.sign(&event.id, timestamp, &body);
        let request = RequestSpec {
            headers: headers(&event.id, timestamp, &signature).map_err(SendError::refused)?,
            body: Some(body),
            ..RequestSpec::new(Method::POST)
        };
        let target = RedirectTarget::configured(self.url.clone()).map_err(SendError::refused)?;
        // `send` and not `follow`: a redirect is a failure (Standard Webhooks 1.0.0,
        // "Deliverability and reliability").
        match self.fetcher.send(&target, &request).await {
            Ok(response) => outcome(response.status(), response.headers()),
            Err(failed) => Err(SendError::temporary(failed)),
        }
    }
}

/// Prints scheme, host and port of the URL only: the user, the password, the path and the query may
/// be secret.
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
        // The specification asks to disable the endpoint after a 410. Here the event is dropped,
        // and an operator removes the webhook.
        StatusCode::GONE => Err(SendError::Permanent(source)),
        _ if is_busy || status.is_server_error() => {
            let retry_after = retry_after(headers);
            Err(SendError::Temporary {
                retry_after,
                source,
            })
        }
        _ => Err(SendError::Refused(source)),
    }
}

/// Location of the secrets of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretLocation {
    /// A file with one secret on each line.
    File(PathBuf),
    /// An environment variable with secrets separated by white space.
    Variable(String),
}

/// The secrets of a webhook. There are several while they are being rotated. Without `Debug`, so
/// that no log prints them.
struct WebhookSecrets(Vec<Key>);

/// Allowed lengths of a secret in bytes (Standard Webhooks 1.0.0, "Signature scheme").
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;
const PREFIX: &str = "whsec_";

impl SecretLocation {
    /// Reads the secrets that the file or variable holds now.
    fn read(&self) -> Result<WebhookSecrets, WebhookError> {
        match self {
            Self::File(path) => {
                let place = path.display().to_string();
                let text = fs::read_to_string(path).map_err(|error| {
                    WebhookError(format!("cannot read the secret file {place}: {error}"))
                })?;
                WebhookSecrets::parse(&text, &place)
            }
            Self::Variable(name) => {
                let text = env::var(name).map_err(|_| {
                    WebhookError(format!(
                        "the environment variable {name} does not hold a secret"
                    ))
                })?;
                WebhookSecrets::parse(&text, name)
            }
        }
    }
}

impl WebhookSecrets {
    fn parse(text: &str, place: &str) -> Result<Self, WebhookError> {
        let mut keys = Vec::new();
        for (word, number) in text.split_whitespace().zip(1..) {
            let Some(key) = key(word) else {
                return Err(WebhookError(format!(
                    "{place}: secret number {number} is not whsec_ and the base64 of 24 to 64 bytes"
                )));
            };
            keys.push(key);
        }
        if keys.is_empty() {
            return Err(WebhookError(format!("{place} holds no secret")));
        }
        Ok(Self(keys))
    }

    /// Returns the `webhook-signature` header: one signature for each secret (Standard Webhooks
    /// 1.0.0, "Signature scheme" and "Webhook headers").
    fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let content = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
        let mut signatures = Vec::new();
        for key in &self.0 {
            let signature = STANDARD.encode(sign(key, &content));
            signatures.push(format!("v1,{signature}"));
        }
        signatures.join(" ")
    }
}

fn key(word: &str) -> Option<Key> {
    let bytes = STANDARD.decode(word.strip_prefix(PREFIX)?).ok()?;
    if !LENGTHS.contains(&bytes.len()) {
        return None;
    }
    Some(Key::new(HMAC_SHA256, &bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn sign_uses_every_secret_as_the_standard_says() {
        let other = format!("{PREFIX}{}", STANDARD.encode([7; 32]));
        let secrets = WebhookSecrets::parse(&format!("{other}\n{SECRET}\n"), "here").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signed = secrets.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        let (first, second) = signed.split_once(' ').unwrap();
        assert!(first.starts_with("v1,") && first != SIGNATURE, "{first}");
        assert_eq!(second, SIGNATURE);
    }

    #[test]
    fn malformed_secret_is_refused_and_not_printed() {
        let of = |length: usize| format!("{PREFIX}{}", STANDARD.encode(vec![7; length]));
        let problem = |text: &str| {
            WebhookSecrets::parse(text, "here")
                .err()
                .map(|error| error.to_string())
        };
        for good in [of(24), of(64)] {
            assert_eq!(problem(&good), None, "{good}");
        }
        let expected = "here: secret number 2 is not whsec_ and the base64 of 24 to 64 bytes";
        for bad in [&of(23), &of(65), "hunter2hunter2", "whsec_%", &SECRET[6..]] {
            assert_eq!(
                problem(&format!("{SECRET} {bad}")).as_deref(),
                Some(expected),
                "{bad}"
            );
        }
        assert_eq!(problem(" \n").as_deref(), Some("here holds no secret"));
    }
}
