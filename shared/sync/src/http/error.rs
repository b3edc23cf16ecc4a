//! Errors of the server of another mirror, by status and transport.

use fetch::FetchError;
use model::Key;
use reqwest::{StatusCode, header::HeaderMap};

use crate::OriginError;

/// A failure of the server that a mirror is copied from.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The server answered 404 or 410: it does not have the document or object.
    #[error("404, it is not there")]
    NotFound,
    /// The server answered 401 or 403: it wants other credentials.
    #[error("{0}, it wants credentials or other ones")]
    Forbidden(StatusCode),
    /// A document with a content coding although none was requested. A proxy or CDN has transformed it.
    #[error("it came with Content-Encoding {0:?}, although none was requested; something on the way transforms it")]
    Encoded(String),
    /// A failure of the exchange itself.
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

impl HttpError {
    /// Sorts a status that is not a success.
    pub(super) fn from_status(status: StatusCode, headers: &HeaderMap) -> Self {
        match status.as_u16() {
            404 | 410 => Self::NotFound,
            401 | 403 => Self::Forbidden(status),
            _ => FetchError::from_status(status, headers).into(),
        }
    }

    /// Adds the key that was requested.
    pub(super) fn at(self, key: &Key) -> OriginError {
        match self {
            Self::NotFound => OriginError::NotFound(key.to_string()),
            Self::Fetch(FetchError::TooLarge { limit }) => OriginError::too_large(key, limit),
            source => OriginError::Http {
                key: key.to_string(),
                source,
            },
        }
    }
}
