//! Failures of a registry, each with what a user can do about it.

use std::error::Error as StdError;
use std::fmt;

use fetch::FetchError;

use crate::advice::fetch_advice;

/// A failure with the registry, the repository and the host at which it happened.
#[derive(Debug)]
pub struct RegistryFailure {
    /// The registry as the source names it.
    pub registry: String,
    /// The repository, without the registry and the tag.
    pub repository: String,
    /// The host that failed, if it is another one: a CDN or a token service.
    pub at: Option<String>,
    /// The failure, without secrets that were sent.
    pub fault: RegistryFault,
    /// Failures of the mirrors that were asked before, in words.
    pub failed_mirrors: Vec<String>,
}

impl fmt::Display for RegistryFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "registry {}, repository {}", self.registry, self.repository)?;
        if let Some(host) = &self.at {
            write!(f, ", at {host}")?;
        }
        write!(f, ": {}", self.fault)?;
        if let Some(advice) = self.fault.advice(self.at.as_ref().unwrap_or(&self.registry)) {
            write!(f, "; {advice}")?;
        }
        let mut mirrors = self.failed_mirrors.iter();
        mirrors.try_for_each(|failure| write!(f, "; before that its mirror failed: {failure}"))
    }
}

impl StdError for RegistryFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The text of the fault is part of this error's text, so its source follows directly.
        self.fault.source()
    }
}

/// A failure of a registry, or of a server that it leads to.
#[derive(Debug, thiserror::Error)]
pub enum RegistryFault {
    /// 401 to fresh credentials, or without any configured.
    #[error("401, {}", login.as_deref().map_or_else(|| "it wants credentials and none are configured".to_owned(), |login| format!("the credentials from {login} were refused")))]
    Unauthorized {
        /// File or helper that gave the credentials, if there were any.
        login: Option<String>,
    },
    /// 403: the account, or an anonymous user, may not pull.
    #[error("403, {} may not pull from it", login.as_deref().map_or_else(|| "anonymous users".to_owned(), |login| format!("the account from {login}")))]
    Forbidden {
        /// File or helper that gave the credentials, if there were any.
        login: Option<String>,
    },
    /// 404: no such manifest, tag or blob.
    #[error("404, there is no {what}")]
    NotFound {
        /// The manifest, tag or blob in words.
        what: String,
    },
    /// A rule of [`RegistryRules`](crate::RegistryRules) forbids pulls from it.
    #[error("registries.conf blocks it")]
    Blocked,
    /// 400 to a plain HTTP request, the usual answer of a server that expects TLS.
    #[error("400, it refuses plain http")]
    PlainHttpRefused,
    /// A malformed digest in a header.
    #[error("it sent a malformed digest")]
    Digest(#[from] oci::DigestError),
    /// A web page in place of a manifest.
    #[error("it answered with a web page instead of a manifest")]
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
        problem: &'static str,
    },
    /// A reference that makes no URL.
    #[error("{0} is not a URL")]
    Url(String),
    /// A failure of the exchange itself.
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

impl RegistryFault {
    /// Passes the parts of the text that the registry chose through `show`.
    pub(crate) fn with_shown_text(self, show: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Fetch(FetchError::Redirect { to, reason }) => {
                Self::Fetch(FetchError::Redirect { to: show(&to), reason })
            }
            Self::TokenService { service, problem } => Self::TokenService {
                service: show(&service),
                problem,
            },
            other => other,
        }
    }

    /// Returns what a user can do about it.
    fn advice(&self, host: &str) -> Option<String> {
        match self {
            Self::Unauthorized { .. } => Some(format!(
                "log in with `podman login {host}` or set REGISTRY_AUTH_FILE to a file that has credentials for it"
            )),
            Self::Forbidden { .. } => Some("ask its owner for the right to pull, or use another account".to_owned()),
            Self::NotFound { .. } => {
                Some("check the name and the tag; some registries also answer so without credentials".to_owned())
            }
            Self::PlainHttpRefused => Some(format!("if it speaks TLS take {host} off plainHttp (--plain-http)")),
            Self::WebPage => Some("a proxy or a login page stands in between, or this is no registry".to_owned()),
            Self::Fetch(error) => fetch_advice(error, host),
            Self::UploadLocation => Some("a proxy in front of it may have to pass its name and scheme on".to_owned()),
            Self::Blocked | Self::Digest(_) | Self::Challenge | Self::TokenService { .. } | Self::Url(_) => None,
        }
    }
}
