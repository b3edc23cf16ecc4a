//! Failures of a server that is not a registry, each with what a user can do about it.

use std::error::Error as StdError;
use std::fmt;

use fetch::FetchError;

use crate::advice::fetch_advice;

/// A failure with the configured URL and the host at which it happened.
#[derive(Debug)]
pub struct WebFailure {
    /// The URL as it is configured. It holds no secrets.
    pub url: String,
    /// The host of that URL.
    pub host: String,
    /// The host that failed, if a redirect led to another one.
    pub at: Option<String>,
    /// The failure, without secrets that were sent.
    pub fault: WebFault,
}

impl fmt::Display for WebFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.url)?;
        if let Some(host) = &self.at {
            write!(f, ", at {host}")?;
        }
        write!(f, ": {}", self.fault)?;
        match self.fault.advice(self.at.as_ref().unwrap_or(&self.host)) {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl StdError for WebFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The text of the fault is part of this error's text, so its source follows directly.
        self.fault.source()
    }
}

/// A failure of a server, or of one that it redirects to.
#[derive(Debug, thiserror::Error)]
pub enum WebFault {
    /// 401 to the credentials, or without any configured.
    #[error("401, {}", login.as_deref().map_or_else(|| "it wants credentials and none are configured".to_owned(), |login| format!("the credentials from {login} were refused")))]
    Unauthorized {
        /// File or helper that gave the credentials, if there were any.
        login: Option<String>,
    },
    /// 403: the account, or an anonymous user, may not read it.
    #[error("403, {} may not read it", login.as_deref().map_or_else(|| "anonymous users".to_owned(), |login| format!("the account from {login}")))]
    Forbidden {
        /// File or helper that gave the credentials, if there were any.
        login: Option<String>,
    },
    /// 404 or 410: there is no such file.
    #[error("404, it is not there")]
    NotFound,
    /// Plain HTTP to a host for which it is not allowed.
    #[error("plain http is refused")]
    PlainHttp {
        /// The host, with its port if one is written.
        host: String,
    },
    /// A web page in place of the file.
    #[error("it answered with a web page")]
    WebPage,
    /// A failure of the exchange itself.
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

impl WebFault {
    /// Returns what a user can do about it.
    fn advice(&self, host: &str) -> Option<String> {
        match self {
            Self::Unauthorized { .. } => Some(format!(
                "add a user and a password for {host} to a file of authFiles (--auth-file)"
            )),
            Self::Forbidden { .. } => Some("ask its owner for the right to read it, or use another account".to_owned()),
            Self::NotFound => Some("check the URL; some servers also answer so without credentials".to_owned()),
            Self::PlainHttp { host } => Some(format!("use https, or list {host} under plainHttp (--plain-http)")),
            Self::WebPage => Some("a proxy or a login page stands in between".to_owned()),
            Self::Fetch(error) => fetch_advice(error, host),
        }
    }
}
