//! Failures between a source and its files.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fetch::{
    AttemptCount, CredentialsError, FetchError, FetchSettingsError, HeaderFileError, RequestError, SentSecrets,
};
use model::text::chain;
use oci::{Digest, ImageError, LimitExceeded, UnpackError};

use crate::{ServerFailure, ServerFault, TreeFault};

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
    Image(ImageError),
    /// A layer or a link that cannot be read, or a sink that refused a file. An exceeded limit is [`Self::Limit`].
    #[error(transparent)]
    Unpack(UnpackError),
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
    /// An image that exceeds one of its limits.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// A resolve or a pull took longer than its limit.
    #[error("it took longer than {} s in all", .0.as_secs())]
    Timeout(Duration),
    /// The error would repeat a secret that was sent to the registry or server.
    #[error("the source cannot be read; the reason is withheld because it repeats a secret that was sent")]
    Withheld,
    /// A blocking task panicked or was cancelled.
    #[error("a reading thread failed")]
    Task(#[source] tokio::task::JoinError),
}

impl From<ImageError> for Error {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::Limit(limit) => Self::Limit(limit),
            other => Self::Image(other),
        }
    }
}

impl From<UnpackError> for Error {
    fn from(error: UnpackError) -> Self {
        match error {
            UnpackError::Limit(limit) => Self::Limit(limit),
            other => Self::Unpack(other),
        }
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
    /// Returns true if the registry took longer than [`SourceSettings::registry_wait`](crate::SourceSettings::registry_wait).
    pub fn is_slow_registry(&self) -> bool {
        let too_long = |fault: &ServerFault| matches!(fault, ServerFault::Fetch(FetchError::WaitedTooLong(_)));
        matches!(self, Self::Server(failure) if too_long(&failure.fault))
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

    /// Replaces an error that repeats one of `secrets`. A server can put the password that it was sent into any text of
    /// an image or archive: media types, platforms, labels, paths. [`ServerFailure`] is clean already.
    pub(crate) fn without(self, secrets: &SentSecrets) -> Self {
        match self {
            Self::Image(_) | Self::Tree { .. } | Self::Unpack(_) | Self::Limit(_) if secrets.are_in(&chain(&self)) => {
                Self::Withheld
            }
            other => other,
        }
    }
}
