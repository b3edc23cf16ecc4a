//! Failures between a source and its files. Those of servers say what a user can do about it.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fetch::{
    AttemptCount, CredentialsError, FetchError, FetchSettingsError, HeaderFileError, Peer,
    RedirectRefusal, RequestError, SentSecrets,
};
use model::text::chain;
use oci::{Digest, ImageError, LayerError, LimitExceeded, UnpackError};

/// Setting that allows a private address.
const INTERNAL: &str = "under internalHosts (--internal-host)";

/// Setting that allows plain HTTP.
const PLAIN_HTTP: &str = "under plainHttp (--plain-http)";

/// Error of resolving or reading a source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// CA files, a proxy or TLS settings that cannot be used.
    #[error(transparent)]
    Settings(#[from] FetchSettingsError),
    /// Credentials are configured and cannot be read.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Credentials are configured, and the settings refuse sources that have some.
    #[error("it is read with the credentials of {origin}, and {reason}")]
    RefusedLogin {
        /// File, secret or helper with the credentials.
        origin: String,
        /// Reason in the settings.
        reason: &'static str,
    },
    /// A file of header fields is configured and cannot be used.
    #[error(transparent)]
    HeaderFile(#[from] HeaderFileError),
    /// A server refused, failed or cannot be reached.
    #[error(transparent)]
    Server(Box<ServerFailure>),
    /// An archive or a git repository cannot be asked, or holds no catalog that can be read.
    #[error("{place}")]
    Tree {
        /// The archive or repository, without secrets.
        place: String,
        /// The underlying error, which the chain prints after this one.
        source: TreeFault,
    },
    /// The image holds no catalog that can be read.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A layer or a link that cannot be read, or a sink that refused a file.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// A file on this machine cannot be read or written.
    #[error("cannot {action} {path}", path = .path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// Path of the file on this machine.
        path: PathBuf,
        /// The underlying error, which the chain prints after this one.
        source: io::Error,
    },
    /// Bytes do not have the digest that they were requested by.
    #[error("{what} has digest {actual}, expected {expected}")]
    Digest {
        /// Kind of the blob: `manifest`, `config`, `layer` or `signature`.
        what: &'static str,
        /// The digest by which the bytes were requested.
        expected: Digest,
        /// The digest of the bytes that were received.
        actual: Digest,
    },
    /// Bytes are more or fewer than the manifest declares.
    #[error("{what} {digest} has {actual} bytes, its manifest declares {declared}")]
    Size {
        /// Kind of the blob: `config`, `layer` or `signature`.
        what: &'static str,
        /// Digest of the blob, as its manifest declares it.
        digest: Digest,
        /// Number of bytes that the manifest declares.
        declared: u64,
        /// Received number of bytes, or the part of it that was read.
        actual: u64,
    },
    /// A source that exceeds one of its limits. [`Self::limit`] returns those of images and their
    /// layers too.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// A resolve or a pull took longer than its limit.
    #[error("it took longer than {} s in all", .0.as_secs())]
    Timeout(Duration),
    /// The error would repeat a secret that was sent to the registry or server.
    #[error(
        "the source cannot be read; the reason is withheld because it repeats a secret that was sent"
    )]
    Withheld,
    /// A blocking task panicked or was cancelled.
    #[error("a reading thread failed")]
    Task(#[source] tokio::task::JoinError),
}

/// A failure of a server, or of one that it leads to.
#[derive(Debug)]
pub struct ServerFailure {
    /// The source on the server.
    pub place: ServerPlace,
    /// The server that failed, if it is another one, such as a CDN or a token service, or was asked
    /// through a proxy.
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
    /// 401 to fresh credentials, or without any configured. Holds the file or helper that gave the
    /// credentials, if some were sent.
    #[error("401, {}", unauthorized(.0.as_deref()))]
    Unauthorized(Option<String>),
    /// 403: the account, or an anonymous user, may not read it. Holds the same as
    /// [`Self::Unauthorized`].
    #[error(
        "403, {} may not read it; ask its owner for the right to read it, or use another account",
        account(.0.as_deref())
    )]
    Forbidden(Option<String>),
    /// A push that it refuses.
    #[error("{}, it refuses the push{}", .status.as_u16(), reason(.words.as_deref()))]
    PushRefused {
        /// Status of the answer.
        status: reqwest::StatusCode,
        /// Reason in its own words, if it gives one.
        words: Option<String>,
    },
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
    #[error(
        "it answered with a web page; a proxy or a login page stands in between, or it is another kind of server"
    )]
    WebPage,
    /// An upload that goes to another server, or nowhere.
    #[error(
        "it names no place of its own to upload to; a proxy in front of it may have to pass its name and scheme on"
    )]
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

/// Returns what is wrong with the credentials of a request, given where they come from.
fn unauthorized(login: Option<&str>) -> String {
    match login {
        Some(login) => format!("the credentials from {login} were refused"),
        None => "it wants credentials and none are configured".to_owned(),
    }
}

fn account(login: Option<&str>) -> String {
    match login {
        Some(login) => format!("the account from {login}"),
        None => "anonymous users".to_owned(),
    }
}

fn reason(words: Option<&str>) -> String {
    match words {
        Some(words) => format!(": {words}"),
        None => String::new(),
    }
}

impl RequestError for Error {
    fn exchange_mut(&mut self) -> Option<(&mut FetchError, &mut AttemptCount)> {
        let Self::Server(failure) = self else {
            return None;
        };
        match &mut failure.fault {
            ServerFault::Fetch(error) => Some((error, &mut failure.attempts)),
            _ => None,
        }
    }
}

impl Error {
    /// Returns the limit that the source exceeds, if that is the error.
    pub const fn limit(&self) -> Option<&LimitExceeded> {
        match self {
            Self::Limit(limit)
            | Self::Image(ImageError::Limit(limit))
            | Self::Unpack(UnpackError::Limit(limit)) => Some(limit),
            _ => None,
        }
    }

    /// Returns true if the registry took longer than
    /// [`SourceSettings::registry_wait`](crate::SourceSettings::registry_wait).
    pub fn is_slow_registry(&self) -> bool {
        let Self::Server(failure) = self else {
            return false;
        };
        matches!(
            failure.fault,
            ServerFault::Fetch(FetchError::WaitedTooLong(_))
        )
    }

    /// Turns an error of reading `path` into one that names it.
    pub(crate) fn reading(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        Self::file("read", path)
    }

    /// Turns an error of writing `path` into one that names it.
    pub(crate) fn writing(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        Self::file("write", path)
    }

    fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// Replaces an error that repeats one of `secrets`. A server can put the password that it was
    /// sent into any text of an image or archive: media types, platforms, labels, paths.
    /// [`ServerFailure`] is clean already.
    pub(crate) fn without(self, secrets: &SentSecrets) -> Self {
        match self {
            Self::Image(_) | Self::Tree { .. } | Self::Unpack(_) | Self::Limit(_)
                if secrets.are_in(&chain(&self)) =>
            {
                Self::Withheld
            }
            other => other,
        }
    }
}

impl ServerFault {
    /// Passes the parts of the text that the server chose through `show`.
    pub(crate) fn with_shown_text(self, show: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Fetch(FetchError::Redirect { to, reason }) => {
                let to = show(&to);
                Self::Fetch(FetchError::Redirect { to, reason })
            }
            Self::Fetch(FetchError::Coding(coding)) => {
                Self::Fetch(FetchError::Coding(show(&coding)))
            }
            Self::TokenService { service, problem } => Self::TokenService {
                service: show(&service),
                problem,
            },
            Self::PushRefused { status, words } => Self::PushRefused {
                status,
                words: words.map(|words| show(&words)),
            },
            other => other,
        }
    }
}

impl ServerFailure {
    /// Returns true for the answer that there is no such manifest, tag, blob or file.
    pub(crate) const fn is_not_found(&self) -> bool {
        matches!(self.fault, ServerFault::NotFound { .. })
    }

    /// Returns true for the answers of a registry that lacks a part of the API, such as HEAD or
    /// lists of referrers.
    pub(crate) fn lacks_api(&self) -> bool {
        match &self.fault {
            ServerFault::PlainHttpRefused => true,
            ServerFault::Fetch(FetchError::Status(status)) => {
                matches!(status.as_u16(), 400 | 405 | 406 | 501)
            }
            _ => false,
        }
    }

    /// Returns what a user can do about it, if that depends on the server.
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
            Fault::PlainHttpRefused => {
                format!("if it speaks TLS take {host} off plainHttp (--plain-http)")
            }
            Fault::Fetch(NotTls) if is_registry => {
                format!("if that is intended list {host} {PLAIN_HTTP}")
            }
            Fault::Fetch(NotTls) => {
                format!("if that is intended write http:// in its URL and list {host} {PLAIN_HTTP}")
            }
            Fault::Fetch(Redirect { to, reason }) if *reason == RedirectRefusal::Private => {
                format!("if that is intended list {to} {INTERNAL}")
            }
            Fault::Fetch(Address { reason }) if *reason == RedirectRefusal::Private => {
                format!("if that is intended list {host} {INTERNAL}")
            }
            Fault::Fetch(RateLimited { .. }) => {
                "poll less often, or log in to be granted more".to_owned()
            }
            Fault::PushRefused { .. } => {
                format!(
                    "the account needs the right to push, and {host} room for it and the repository"
                )
            }
            Fault::NotFound { .. } => {
                let names = if is_registry {
                    "name and the tag"
                } else {
                    "URL"
                };
                format!("check the {names}; some servers also answer so without credentials")
            }
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
        for failure in &self.place.failed_mirrors {
            write!(f, "; before that its mirror failed: {failure}")?;
        }
        Ok(())
    }
}

impl StdError for ServerFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The text of the fault is part of this error's text, so its source follows directly.
        self.fault.source()
    }
}

/// The reason for which an archive or a git repository holds no catalog that can be read.
#[derive(Debug, thiserror::Error)]
pub enum TreeFault {
    /// An archive that is broken, hostile or of an unsupported format.
    #[error(transparent)]
    Unpack(#[from] LayerError),
    /// No entry for the folder of the source.
    #[error("has no folder {0}, which its source names after #")]
    NoFolder(String),
    /// A file or a link in place of the folder of the source.
    #[error("has no folder at {0} but something else; its source has to name a folder after #")]
    NotFolder(String),
    /// Other bytes, or another commit, than those that were resolved.
    #[error("changed between two requests: poll again to read the new content")]
    Changed,
    /// A name that no checkout of git can have.
    #[error("has an entry of the name {0}, which git does not allow")]
    Name(String),
    /// A submodule of git, whose files are in another repository.
    #[error(
        "has the submodule {0}, which cannot be read: move it out of the folder of the catalog"
    )]
    Submodule(String),
    /// A commit that git has fetched and cannot read, or that lacks the folder. Cleaned for logs.
    #[error("git cannot read the commit: {0}")]
    Commit(String),
    /// A failure of git or a message of the server, cleaned for logs.
    #[error("git failed: {0}")]
    Git(String),
    /// No program `git` on the path.
    #[error(
        "it is read by git(1), which is not on the path: install git, or write the URL of an archive of the branch, \
         such as https://HOST/PATH.tar.gz"
    )]
    NoGit,
    /// A server that does not speak git's protocol at the URL.
    #[error(
        "it does not answer as a git repository: check the URL; some servers need .git at its end"
    )]
    NotGit,
    /// A redirect of a git repository to another server.
    #[error("its server redirects to {0}: write the URL there")]
    Redirected(String),
    /// No branch or tag of the name.
    #[error(
        "has no branch or tag {0}: `git ls-remote` lists them. A commit is named by all 40 digits of its hash"
    )]
    NoRef(String),
}

impl TreeFault {
    /// Returns true if the same revision would fail again. The answers of a server may be others
    /// the next time.
    pub const fn is_of_content(&self) -> bool {
        matches!(
            self,
            Self::Unpack(_)
                | Self::NoFolder(_)
                | Self::NotFolder(_)
                | Self::Name(_)
                | Self::Submodule(_)
                | Self::Commit(_)
        )
    }

    /// Names the archive or repository.
    pub(crate) fn at(self, place: &impl ToString) -> Error {
        Error::Tree {
            place: place.to_string(),
            source: self,
        }
    }
}
