use std::{error::Error as StdError, time::Duration};

use layout::Key;
use reqwest::{StatusCode, header::HeaderMap};
use retry::retry_after;

use crate::OriginError;

/// What a server can answer or fail with.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// 404 or 410.
    #[error("404, it is not there")]
    NotFound,
    /// 401 or 403.
    #[error("{0}, it wants credentials or other ones")]
    Forbidden(StatusCode),
    /// 408, 429, 500, 502, 503 or 504 that did not pass in time.
    #[error("{status}, it is not available{}", retry_after.map_or_else(String::new, |wait| format!(" and asks to wait {} s", wait.as_secs())))]
    Unavailable {
        /// Which status.
        status: StatusCode,
        /// What the server asked for.
        retry_after: Option<Duration>,
    },
    /// Any other status.
    #[error("unexpected answer {0}")]
    Status(StatusCode),
    /// No trusted TLS connection.
    #[error("no TLS connection; for a private CA there is --ca-file")]
    Tls(#[source] reqwest::Error),
    /// No connection at all.
    #[error("cannot connect")]
    Connect(#[source] reqwest::Error),
    /// Silence.
    #[error("it did not answer in time")]
    Timeout(#[source] reqwest::Error),
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] reqwest::Error),
    /// A partial answer other than the one asked for.
    #[error("it answered a range request with another range")]
    Range,
    /// A document that came in a coding nobody asked for.
    #[error("it came with Content-Encoding {0:?}, although none was asked for; something on the way transforms it")]
    Encoded(String),
    /// A redirect that must not be followed.
    #[error("it redirects to {to}, which is refused: {why}")]
    Redirect {
        /// The host it leads to.
        to: String,
        /// Why not.
        why: &'static str,
    },
}

impl HttpError {
    /// Whether the same request may succeed a little later.
    pub(super) const fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Connect(_) | Self::Timeout(_) | Self::Broken(_) => true,
            Self::NotFound
            | Self::Forbidden(_)
            | Self::Status(_)
            | Self::Tls(_)
            | Self::Range
            | Self::Encoded(_)
            | Self::Redirect { .. } => false,
        }
    }

    pub(super) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    pub(super) fn from_status(status: StatusCode, headers: &HeaderMap) -> Self {
        match status.as_u16() {
            404 | 410 => Self::NotFound,
            401 | 403 => Self::Forbidden(status),
            408 | 429 | 500 | 502 | 503 | 504 => Self::Unavailable {
                status,
                retry_after: retry_after(headers),
            },
            _ => Self::Status(status),
        }
    }

    /// Sorts a transport error by its typed causes.
    pub(super) fn of(error: reqwest::Error) -> Self {
        // A redirect's URL may carry a signature that grants access.
        let error = error.without_url();
        if has_tls_cause(&error) {
            Self::Tls(error)
        } else if error.is_timeout() {
            Self::Timeout(error)
        } else if error.is_connect() {
            Self::Connect(error)
        } else {
            Self::Broken(error)
        }
    }

    pub(super) fn at(self, key: &Key) -> OriginError {
        OriginError::Http {
            key: key.to_string(),
            source: self,
        }
    }
}

/// Also inside an `io::Error`, which hides what it wraps from `source`. A server that goes away in the middle of a
/// handshake is no TLS cause, but an `io::Error` of its own.
fn has_tls_cause(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        if cause.is::<rustls::Error>() {
            return true;
        }
        let wrapped = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match wrapped {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    false
}
