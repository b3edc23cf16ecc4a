//! Failures of servers, each with what a user can do about it.

use std::error::Error as StdError;
use std::fmt;

use fetch::{AttemptCount, FetchError, Peer, RedirectRefusal};

/// Setting that allows a private address.
const INTERNAL: &str = "under internalHosts (--internal-host)";

/// Setting that allows plain HTTP.
const PLAIN_HTTP: &str = "under plainHttp (--plain-http)";

/// A failure of a server, or of one that it leads to.
#[derive(Debug)]
pub struct ServerFailure {
    /// The source on the server.
    pub place: ServerPlace,
    /// The server that failed, if it is another one, such as a CDN or a token service, or was asked through a proxy.
    pub at: Option<Peer>,
    /// The failure, without secrets that were sent.
    pub fault: ServerFault,
    /// Number of attempts at the exchange.
    pub attempts: AttemptCount,
}

/// A source on a server, for errors. Holds no secrets.
#[derive(Debug, Clone)]
pub struct ServerPlace {
    /// The source in words: the registry and the repository, or the URL as it is configured.
    pub text: String,
    /// The host that is asked, with its port if one is written.
    pub host: String,
    /// Name of the host as the user writes it: Docker Hub has another one.
    pub name: String,
    /// True for a registry, false for a web server.
    pub is_registry: bool,
    /// Failures of the mirrors that were asked before, in words.
    pub failed_mirrors: Vec<String>,
}

/// The kind of a server's failure.
#[derive(Debug, thiserror::Error)]
pub enum ServerFault {
    /// 401 to fresh credentials, or without any configured. Holds the file or helper that gave the credentials, if some were sent.
    #[error("401, {}", .0.as_deref().map_or_else(|| "it wants credentials and none are configured".to_owned(), |login| format!("the credentials from {login} were refused")))]
    Unauthorized(Option<String>),
    /// 403: the account, or an anonymous user, may not read it. Holds the same as [`Self::Unauthorized`].
    #[error("403, {} may not read it", .0.as_deref().map_or_else(|| "anonymous users".to_owned(), |login| format!("the account from {login}")))]
    Forbidden(Option<String>),
    /// 404 or 410: no such manifest, tag, blob or file.
    #[error("404, there is no {what}")]
    NotFound {
        /// The manifest, tag, blob or file in words.
        what: String,
    },
    /// A rule of [`RegistryRules`](crate::RegistryRules) forbids pulls from it.
    #[error("registries.conf blocks it")]
    Blocked,
    /// Plain HTTP to a host for which it is not allowed.
    #[error("plain http is refused")]
    PlainHttp,
    /// 400 to a plain HTTP request, the usual answer of a server that expects TLS.
    #[error("400, it refuses plain http")]
    PlainHttpRefused,
    /// A malformed digest in a header.
    #[error("it sent a malformed digest")]
    Digest(#[from] oci::DigestError),
    /// A web page in place of a manifest or file.
    #[error("it answered with a web page")]
    WebPage,
    /// An upload that goes to another server, or nowhere.
    #[error("it names no place of its own to upload to")]
    UploadLocation,
    /// A challenge of an unknown kind.
    #[error("it asks for an unknown kind of authentication")]
    Challenge,
    /// A token service that answers without a usable token.
    #[error("its token service {service} {problem}")]
    TokenService {
        /// Host of the token service, cleaned for logs.
        service: String,
        /// The problem with the service's answer, in words.
        problem: String,
    },
    /// A reference that makes no URL.
    #[error("{0} is not a URL")]
    Url(String),
    /// A failure of the exchange itself.
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

impl ServerFault {
    /// Passes the parts of the text that the server chose through `show`.
    pub(crate) fn with_shown_text(self, show: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Fetch(FetchError::Redirect { to, reason }) => FetchError::Redirect { to: show(&to), reason }.into(),
            Self::Fetch(FetchError::Coding(coding)) => FetchError::Coding(show(&coding)).into(),
            Self::TokenService { service, problem } => Self::TokenService {
                service: show(&service),
                problem,
            },
            other => other,
        }
    }
}

impl ServerFailure {
    /// Returns what a user can do about it.
    fn advice(&self) -> Option<String> {
        let host = self.at.as_ref().map_or(&self.place.name, |peer| &peer.host);
        let is_registry = self.place.is_registry;
        use FetchError::{Address, NotTls, RateLimited, Redirect};
        use ServerFault as Fault;
        Some(match &self.fault {
            Fault::Unauthorized(_) if is_registry => format!(
                "log in with `podman login {host}`, or name a file that has credentials for it with --auth-file or \
                 REGISTRY_AUTH_FILE"
            ),
            Fault::Unauthorized(_) => {
                format!("add a user and a password for {host} to a file of authFiles (--auth-file)")
            }
            Fault::PlainHttp => format!("use https, or list {host} {PLAIN_HTTP}"),
            Fault::PlainHttpRefused => format!("if it speaks TLS take {host} off plainHttp (--plain-http)"),
            Fault::Fetch(NotTls) if is_registry => format!("if that is intended list {host} {PLAIN_HTTP}"),
            Fault::Fetch(NotTls) => {
                format!("if that is intended write http:// in its URL and list {host} {PLAIN_HTTP}")
            }
            Fault::Fetch(Redirect { to, reason }) if *reason == RedirectRefusal::Private => {
                format!("if that is intended list {to} {INTERNAL}")
            }
            Fault::Fetch(Address { reason }) if *reason == RedirectRefusal::Private => {
                format!("if that is intended list {host} {INTERNAL}")
            }
            Fault::Fetch(RateLimited { .. }) => "poll less often, or log in to be granted more".to_owned(),
            Fault::Forbidden(_) => "ask its owner for the right to read it, or use another account".to_owned(),
            Fault::NotFound { .. } => {
                let names = if is_registry { "name and the tag" } else { "URL" };
                format!("check the {names}; some servers also answer so without credentials")
            }
            Fault::WebPage => "a proxy or a login page stands in between, or it is another kind of server".to_owned(),
            Fault::UploadLocation => "a proxy in front of it may have to pass its name and scheme on".to_owned(),
            _ => return None,
        })
    }
}

impl fmt::Display for ServerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place.text)?;
        if let Some(peer) = &self.at {
            write!(f, ", at {peer}")?;
        }
        write!(f, ": {}{}", self.fault, self.attempts)?;
        if let Some(advice) = self.advice() {
            write!(f, "; {advice}")?;
        }
        let mut mirrors = self.place.failed_mirrors.iter();
        mirrors.try_for_each(|failure| write!(f, "; before that its mirror failed: {failure}"))
    }
}

impl StdError for ServerFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The text of the fault is part of this error's text, so its source follows directly.
        self.fault.source()
    }
}
