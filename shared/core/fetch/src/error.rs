//! Errors of outgoing HTTP, and the decision to retry them.

use std::error::Error as StdError;
use std::fmt;
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{StatusCode, Url};

/// A failure of one exchange. No variant prints a URL, because a URL can carry a signature that
/// grants access.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server answered 429, too many requests, until the last attempt.
    #[error("429, too many requests{}", wish(*retry_after))]
    RateLimited {
        /// The wait that the server asked for.
        retry_after: Option<Duration>,
    },
    /// 408, 500, 502, 503 or 504 until the last attempt.
    #[error("{status}, it is not available{}", wish(*retry_after))]
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
    #[error(
        "it sent a body with the content coding {0}, which was not asked for and cannot be decoded"
    )]
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

/// Returns the wait that a server asks for, as the end of a sentence.
fn wish(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(wait) => format!(", it asks to wait {} s", wait.as_secs()),
        None => String::new(),
    }
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
        match &self.proxy {
            Some(proxy) => write!(f, " through the proxy {proxy}"),
            None => Ok(()),
        }
    }
}

impl FetchError {
    /// Sorts a status that is not a success.
    pub fn from_status(status: StatusCode, headers: &HeaderMap) -> Self {
        let retry_after = retry_after(headers);
        match status.as_u16() {
            429 => Self::RateLimited { retry_after },
            408 | 500 | 502 | 503 | 504 => Self::Unavailable {
                status,
                retry_after,
            },
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
            Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => {
                Self::NotTls
            }
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
            Self::RateLimited { retry_after } | Self::Unavailable { retry_after, .. } => {
                *retry_after
            }
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

/// Returns the text of the first cause. The errors in front of it name the libraries that pass it
/// on.
fn root_cause(error: &(dyn StdError + 'static)) -> String {
    match causes(error).last() {
        Some(cause) => cause.to_string(),
        None => String::new(),
    }
}

/// Returns the first cause of type `T`.
fn find_cause<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Returns an error and its causes. Looks into `io::Error` too, which hides the error it wraps from
/// `source`.
fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(
        Some(error),
        |&cause| -> Option<&'a (dyn StdError + 'static)> {
            let wrapped = cause
                .downcast_ref::<std::io::Error>()
                .and_then(std::io::Error::get_ref);
            match wrapped {
                Some(inner) => Some(inner),
                None => cause.source(),
            }
        },
    )
}

/// The reason for which a redirect, a token realm or a next page is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedirectRefusal {
    /// The location cannot be parsed as a URL.
    #[error("the location is not a URL")]
    NotUrl,
    /// The scheme is neither `http` nor `https`.
    #[error("it is not http")]
    Scheme,
    /// Plain HTTP to a host for which it is not allowed.
    #[error("the host is not listed under plainHttp")]
    PlainHttp,
    /// From HTTPS to plain HTTP, which would expose the rest of the exchange.
    #[error("it leads from https to plain http")]
    Downgrade,
    /// A user name or password in the URL: credentials come from the configuration only.
    #[error("the URL carries credentials")]
    Userinfo,
    /// A link-local address or a metadata service,
    /// [`AddressScope::Forbidden`](crate::AddressScope::Forbidden).
    #[error("the address is link-local or a metadata service")]
    LinkLocal,
    /// An address nearer than the server that sent the redirect.
    #[error("the address is private")]
    Private,
    /// More redirects than one request may take, most likely a loop.
    #[error("there are too many redirects")]
    TooMany,
    /// A next page on another server, which would decide which entries the list has.
    #[error("the next page of a list has to be on the same server")]
    OtherServer,
}

impl RedirectRefusal {
    /// Wraps the reason into an error that names the host of `to`.
    pub fn error(self, to: &Url) -> FetchError {
        FetchError::Redirect {
            to: authority(to),
            reason: self,
        }
    }
}

/// Reads `Retry-After`, in seconds or as a date (RFC 9110, section 10.2.3). A date in the past is
/// zero; a value that cannot be parsed is `None`.
///
/// ```
/// use std::time::Duration;
///
/// let mut headers = http::HeaderMap::new();
/// headers.insert("retry-after", "120".parse().unwrap());
/// assert_eq!(fetch::retry_after(&headers), Some(Duration::from_secs(120)));
/// ```
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Returns the host of a URL, with the port if one is written.
///
/// ```
/// use fetch::authority;
///
/// assert_eq!(authority(&"https://quay.io:8443/v2/".parse().unwrap()), "quay.io:8443");
/// assert_eq!(authority(&"https://quay.io/v2/".parse().unwrap()), "quay.io");
/// ```
pub fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or("nowhere");
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn retry_after_accepts_seconds_and_dates() {
        let parse = |value: &str| {
            retry_after(&HeaderMap::from_iter([(
                RETRY_AFTER,
                value.parse().unwrap(),
            )]))
        };
        for seconds in [0, 120, u64::MAX] {
            assert_eq!(
                parse(&seconds.to_string()),
                Some(Duration::from_secs(seconds))
            );
        }
        assert_eq!(parse("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        assert!(parse(&soon).unwrap() > Duration::from_secs(90));
        for wrong in ["soon", "-1", "1.5", "99999999999999999999999999"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
