//! What a registry can answer or fail with, told so that a user knows what to do.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;

use crate::registry::Refusal;
use crate::registry::names::TooNear;

/// A registry's failure, with the place it happened at.
#[derive(Debug)]
pub struct RegistryError {
    /// The registry as the source names it.
    pub registry: String,
    /// The repository in it.
    pub repository: String,
    /// The host that failed, where it is another: a CDN or a token service.
    pub at: Option<String>,
    /// What went wrong.
    pub fault: Fault,
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "registry {}, repository {}", self.registry, self.repository)?;
        if let Some(host) = &self.at {
            write!(f, ", at {host}")?;
        }
        write!(f, ": {}", self.fault)?;
        match self.fault.hint(self.at.as_ref().unwrap_or(&self.registry)) {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl StdError for RegistryError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The fault's own text is part of ours, so its source is ours too.
        self.fault.source()
    }
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// 401, with fresh credentials.
    #[error("401, {}", login.as_deref().map_or_else(|| "it wants credentials and none are configured".to_owned(), |login| format!("the credentials from {login} were refused")))]
    Unauthorized {
        /// Where the credentials came from, if there were any.
        login: Option<String>,
    },
    /// 403.
    #[error("403, {} may not pull from it", login.as_deref().map_or_else(|| "anonymous users".to_owned(), |login| format!("the account from {login}")))]
    Forbidden {
        /// Where the credentials came from, if there were any.
        login: Option<String>,
    },
    /// 404.
    #[error("404, there is no {what}")]
    NotFound {
        /// Which manifest or blob.
        what: String,
    },
    /// 429 that did not pass in time.
    #[error("429, too many requests{}", retry_after.map_or_else(String::new, |wait| format!(", it asks to wait {} s", wait.as_secs())))]
    RateLimited {
        /// What the registry asked for.
        retry_after: Option<Duration>,
    },
    /// 408, 500, 502, 503 or 504 that did not pass in time.
    #[error("{status}, it is not available")]
    Unavailable {
        /// Which status.
        status: StatusCode,
        /// What the registry asked for.
        retry_after: Option<Duration>,
    },
    /// Any other status.
    #[error("unexpected answer {0}")]
    Status(StatusCode),
    /// No trusted TLS connection.
    #[error("no TLS connection")]
    Tls(#[source] reqwest::Error),
    /// The registry speaks plain http.
    #[error("it does not speak TLS")]
    PlainHttp,
    /// 400 to plain http, which is what a server says that expects TLS.
    #[error("400, it refuses plain http")]
    PlainRefused,
    /// No connection at all.
    #[error("cannot connect")]
    Connect(#[source] reqwest::Error),
    /// Silence.
    #[error("it did not answer in time")]
    Timeout(#[source] reqwest::Error),
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] reqwest::Error),
    /// A body ended early.
    #[error("a body ended after {got} of {want} bytes")]
    Cut {
        /// Bytes that came.
        got: u64,
        /// Bytes that were declared.
        want: u64,
    },
    /// Drop by drop.
    #[error("a body came too slowly, {bytes} bytes in {} s", waited.as_secs())]
    Slow {
        /// Bytes that came.
        bytes: u64,
        /// The time spent waiting for them.
        waited: Duration,
    },
    /// A partial answer other than the one asked for.
    #[error("it answered a range request with another range")]
    Range,
    /// A digest header that is not one.
    #[error("it sent a malformed digest")]
    Digest(#[from] crate::DigestError),
    /// A redirect or a token realm that must not be followed, or a registry where there can be none.
    #[error("it leads to {to}, which is refused: {why}")]
    Redirect {
        /// The host it leads to, with its port if one is written.
        to: String,
        /// Why not.
        why: Refusal,
    },
    /// A name whose addresses must not be connected to.
    #[error("it is at an address that is refused: {why}")]
    Address {
        /// Why not.
        why: Refusal,
    },
    /// A page for people.
    #[error("it answered with a web page instead of a manifest")]
    Page,
    /// A challenge nobody understands.
    #[error("it asks for an unknown kind of authentication")]
    Challenge,
    /// A token service that must not be asked, or answers nonsense.
    #[error("its token service {service} {why}")]
    TokenService {
        /// Its host.
        service: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A reference that makes no URL.
    #[error("{0} is not a URL")]
    Url(String),
}

impl Fault {
    /// Whether the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::Connect(_)
            | Self::Timeout(_)
            | Self::Broken(_)
            | Self::Cut { .. }
            | Self::Slow { .. } => true,
            Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Status(_)
            | Self::Tls(_)
            | Self::PlainHttp
            | Self::PlainRefused
            | Self::Range
            | Self::Digest(_)
            | Self::Redirect { .. }
            | Self::Address { .. }
            | Self::Page
            | Self::Challenge
            | Self::TokenService { .. }
            | Self::Url(_) => false,
        }
    }

    /// How long the registry asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after } | Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Passes the words in it that the registry chose through `show`.
    pub(crate) fn quoting(self, show: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Redirect { to, why } => Self::Redirect { to: show(&to), why },
            Self::TokenService { service, why } => Self::TokenService {
                service: show(&service),
                why,
            },
            other => other,
        }
    }

    fn hint(&self, host: &str) -> Option<String> {
        match self {
            Self::Unauthorized { .. } => Some(format!(
                "log in with `podman login {host}` or set REGISTRY_AUTH_FILE to a file that has credentials for it"
            )),
            Self::Forbidden { .. } => Some("ask its owner for the right to pull, or use another account".to_owned()),
            Self::NotFound { .. } => {
                Some("check the name and the tag; some registries also answer so without credentials".to_owned())
            }
            Self::RateLimited { .. } => Some("poll less often, or log in to be granted more".to_owned()),
            Self::Tls(error) => Some(mistrust(error).to_owned()),
            Self::PlainHttp => Some(format!("if that is intended list {host} under plainHttp")),
            Self::PlainRefused => Some(format!("if it speaks TLS take {host} off plainHttp (--plain-http)")),
            Self::Redirect { to, why } if *why == Refusal::Private => Some(format!(
                "if that is intended list {to} under internalHosts (--internal-host)"
            )),
            Self::Address { why } if *why == Refusal::Private => Some(format!(
                "if that is intended list {host} under internalHosts (--internal-host)"
            )),
            Self::Page => Some("a proxy or a login page stands in between, or this is no registry".to_owned()),
            _ => None,
        }
    }

    /// Sorts a transport error by its typed causes.
    pub(crate) fn of(error: reqwest::Error) -> Self {
        // A URL may carry a signature that grants access; the place is named by us.
        let error = error.without_url();
        if let Some(near) = find::<TooNear>(&error) {
            let why = Refusal::of(near.zone);
            return Self::Address { why };
        }
        match find::<rustls::Error>(&error) {
            Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => Self::PlainHttp,
            Some(_) => Self::Tls(error),
            None if error.is_timeout() => Self::Timeout(error),
            None if error.is_connect() => Self::Connect(error),
            None => Self::Broken(error),
        }
    }
}

/// What to do about a host that is not trusted.
fn mistrust(error: &reqwest::Error) -> &'static str {
    use rustls::CertificateError as Certificate;
    match find::<rustls::Error>(error) {
        Some(rustls::Error::InvalidCertificate(Certificate::Expired | Certificate::ExpiredContext { .. })) => {
            "its certificate has expired: its owner must renew it, unless this machine's clock is wrong"
        }
        Some(rustls::Error::InvalidCertificate(
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
        )) => "its certificate is for another name: write the one that it is for",
        Some(rustls::Error::InvalidCertificate(_)) => {
            "if it uses a private CA add that with --ca-file, or point SSL_CERT_FILE to a bundle"
        }
        _ => "it must speak TLS 1.2 or 1.3",
    }
}

/// The first cause of type `T`, also inside an `io::Error`, which hides what it wraps from `source`.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<T>() {
            return Some(found);
        }
        let wrapped = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match wrapped {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    None
}
