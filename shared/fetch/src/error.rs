//! Errors of outgoing HTTP, and the decision to retry them.

use std::{error::Error as StdError, fmt, time::Duration};

use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};

use crate::redirect::{RedirectRefusal, authority};
use crate::retry::retry_after;

/// A failure of one exchange. No variant prints a URL, because a URL can carry a signature that grants access.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server answered 429, too many requests, until the last attempt.
    #[error("429, too many requests{}", retry_after.map_or_else(String::new, |wait| format!(", it asks to wait {} s", wait.as_secs())))]
    RateLimited {
        /// The wait that the server asked for.
        retry_after: Option<Duration>,
    },
    /// 408, 500, 502, 503 or 504 until the last attempt.
    #[error("{status}, it is not available{}", retry_after.map_or_else(String::new, |wait| format!(", it asks to wait {} s", wait.as_secs())))]
    Unavailable {
        /// The status that the server sent.
        status: StatusCode,
        /// The wait that the server asked for.
        retry_after: Option<Duration>,
    },
    /// Any other status that is not a success.
    #[error("unexpected answer {0}")]
    Status(StatusCode),
    /// No TLS connection to a trusted server.
    #[error("no TLS connection: {}", tls_cause(.0))]
    Tls(reqwest::Error),
    /// The server answered a TLS handshake in plain HTTP.
    #[error("it does not speak TLS")]
    NotTls,
    /// No connection to any address of the host.
    #[error("cannot connect: {}", root_cause(.0))]
    Connect(reqwest::Error),
    /// No byte within the read timeout.
    #[error("it did not answer in time")]
    Timeout(reqwest::Error),
    /// A connection that broke after the request was sent.
    #[error("the connection broke: {}", root_cause(.0))]
    Broken(reqwest::Error),
    /// A body that ended before its declared length.
    #[error("a body ended after {received} of {expected} bytes")]
    Truncated {
        /// Number of bytes received.
        received: u64,
        /// Number of bytes that the server declared.
        expected: u64,
    },
    /// The body came below the minimum throughput.
    #[error("a body came too slowly, {bytes} bytes in {} s", waited.as_secs())]
    TooSlow {
        /// Number of bytes received in the period.
        bytes: u64,
        /// Time spent waiting for the server in the period.
        waited: Duration,
    },
    /// The requests of one fetcher waited for servers longer than it may, all together.
    #[error("its answers took more than {} s in all", .0.as_secs())]
    WaitedTooLong(Duration),
    /// The body is larger than the caller takes.
    #[error("a body has more than {limit} bytes")]
    TooLarge {
        /// Maximum size that the caller takes, in bytes.
        limit: u64,
    },
    /// A partial answer other than the requested one.
    #[error("it answered a range request with another range")]
    Range,
    /// A redirect or another URL that must not be followed.
    #[error("it leads to {to}, which is refused: {reason}")]
    Redirect {
        /// The host, with its port if one is written.
        to: String,
        /// The rule that the URL or the address breaks.
        reason: RedirectRefusal,
    },
    /// A content coding, by its name, which was not asked for and is not decoded.
    #[error("it sent a body with the content coding {0}, which was not asked for and cannot be decoded")]
    Coding(String),
    /// A proxy of the environment that cannot be used for the request.
    #[error("its proxy cannot be used: {0}")]
    Proxy(&'static str),
    /// A host name that resolves only to addresses that must not be connected to.
    #[error("it is at an address that is refused: {reason}")]
    Address {
        /// The rule that the URL or the address breaks.
        reason: RedirectRefusal,
    },
}

/// Server of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The host, with its port if one is written.
    pub host: String,
    /// Host and port of the proxy that the exchange went through.
    pub proxy: Option<String>,
}

/// A failure with the server at which it happened, which a redirect may have changed.
#[derive(Debug, thiserror::Error)]
#[error("{peer}")]
pub struct FailedFetch {
    /// The server.
    pub peer: Peer,
    /// The underlying error, which the chain prints after the server.
    #[source]
    pub error: FetchError,
}

impl Peer {
    /// Returns the server of a URL.
    pub fn of(url: &Url, proxy: Option<&Url>) -> Self {
        Self {
            host: authority(url),
            proxy: proxy.map(authority),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        let mut proxy = self.proxy.iter();
        proxy.try_for_each(|proxy| write!(f, " through the proxy {proxy}"))
    }
}

impl FetchError {
    /// Sorts a status that is not a success.
    pub fn from_status(status: StatusCode, headers: &HeaderMap) -> Self {
        let retry_after = retry_after(headers);
        match status.as_u16() {
            429 => Self::RateLimited { retry_after },
            408 | 500 | 502 | 503 | 504 => Self::Unavailable { status, retry_after },
            _ => Self::Status(status),
        }
    }

    /// Sorts a transport error by the types of its causes.
    pub(crate) fn from_transport(error: reqwest::Error) -> Self {
        // The URL of a CDN can carry a signature that grants access.
        let error = error.without_url();
        // Of the resolver, for a name whose addresses must not be connected to.
        if let Some(&reason) = find_cause::<RedirectRefusal>(&error) {
            return Self::Address { reason };
        }
        match find_cause::<rustls::Error>(&error) {
            Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => Self::NotTls,
            Some(_) => Self::Tls(error),
            None if error.is_timeout() => Self::Timeout(error),
            None if error.is_connect() => Self::Connect(error),
            None => Self::Broken(error),
        }
    }

    /// Returns true if the same request may succeed a little later.
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Unavailable { .. }
                | Self::Connect(_)
                | Self::Timeout(_)
                | Self::Broken(_)
                | Self::Truncated { .. }
                | Self::TooSlow { .. }
        )
    }

    /// Returns the wait that the server asked for in `Retry-After`.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after } | Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Adds the server, which errors name in place of the URL.
    pub fn at(self, peer: Peer) -> FailedFetch {
        FailedFetch { peer, error: self }
    }
}

/// Returns the reason for a failed handshake, and what a user can do about it.
fn tls_cause(error: &reqwest::Error) -> String {
    use rustls::CertificateError as Certificate;
    let said = match find_cause::<rustls::Error>(error) {
        Some(rustls::Error::InvalidCertificate(reason)) => match reason {
            Certificate::UnknownIssuer => {
                "no CA that is trusted here has signed its certificate: add a private CA with --ca-file, or point SSL_CERT_FILE to a bundle"
            }
            Certificate::Expired | Certificate::ExpiredContext { .. } => {
                "its certificate has expired: its owner must renew it, unless this machine's clock is wrong"
            }
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                "its certificate is not valid yet: this machine's clock may be wrong"
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                "its certificate is for another name: use the name in the certificate"
            }
            _ => return format!("{}; add a private CA with --ca-file", root_cause(error)),
        },
        _ => return format!("{}; it must speak TLS 1.2 or 1.3", root_cause(error)),
    };
    said.to_owned()
}

/// Returns the text of the first cause. The errors in front of it name the libraries that pass it on.
fn root_cause(error: &(dyn StdError + 'static)) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}

/// Returns the first cause of type `T`.
fn find_cause<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Returns an error and its causes. Looks into `io::Error` too, which hides the error it wraps from `source`.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&cause| -> Option<&'a (dyn StdError + 'static)> {
        let wrapped = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        match wrapped {
            Some(inner) => Some(inner),
            None => cause.source(),
        }
    })
}

#[cfg(test)]
mod tests {
    use reqwest::header::RETRY_AFTER;

    use super::*;

    #[test]
    fn status_is_transient_only_if_server_may_recover() {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, "7".parse().unwrap())]);
        for status in 200..600 {
            let error = FetchError::from_status(StatusCode::from_u16(status).unwrap(), &headers);
            let is_transient = [408, 429, 500, 502, 503, 504].contains(&status);
            assert_eq!(error.is_transient(), is_transient, "{status}");
            if [429, 503].contains(&status) {
                assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
                assert!(error.to_string().contains("asks to wait 7 s"), "{error}");
            }
        }
    }
}
