//! Failures of a git repository, each with what a user can do about it.

use oci::LayerError;
#[cfg(feature = "git")]
use oci::{LimitExceeded, UnpackError};

use super::location::GitLocation;
use crate::error::Error;

/// The reason for which a git repository has no catalog that can be read.
#[derive(Debug, thiserror::Error)]
pub enum GitFault {
    /// A program without the feature `git`.
    #[error("this program was built without git: build it with `--features git`")]
    NotBuilt,
    /// An answer that does not follow the protocol of git over HTTP.
    #[error("it does not answer as a git repository ({0}): check the URL; some servers need .git at its end")]
    NotGit(&'static str),
    /// A server that speaks only the protocol versions 0 and 1.
    #[error(
        "its server does not speak version 2 of git's protocol: write the URL of an archive of the branch, \
         such as https://HOST/PATH.tar.gz"
    )]
    OldProtocol,
    /// A repository whose objects are not named by SHA-1.
    #[error("its objects are named by {0}, and only sha1 can be read")]
    ObjectFormat(String),
    /// A server that breaks the protocol.
    #[error("its server breaks git's protocol: {0}")]
    Protocol(&'static str),
    /// A message of the server in place of an answer, cleaned for logs.
    #[error("its server refuses: {0}")]
    Refused(String),
    /// An answer that ended before the end of its pack.
    #[error("its pack ended early")]
    Truncated,
    /// No branch or tag of the name.
    #[error("has no branch or tag {name}; it has {found}. A commit is named by all 40 digits of its hash")]
    NoRef {
        /// Name that the source has.
        name: String,
        /// Names that the repository has, separated by commas.
        found: String,
    },
    /// A reference that leads to something else than a commit.
    #[error("{0} is not a commit")]
    NotCommit(String),
    /// A pack that is broken or hostile.
    #[error("its pack is malformed: {0}")]
    Pack(&'static str),
    /// An object of a pack that cannot be rebuilt.
    #[error("its pack is malformed: {0}")]
    Object(String),
    /// A delta that needs more memory than there is for it.
    #[error(
        "its pack stores an object of {0} bytes as a delta that takes too much memory: write the URL of an archive of the \
         branch, such as https://HOST/PATH.tar.gz"
    )]
    LargeDelta(u64),
    /// An object that the pack lacks.
    #[error("its pack lacks the {kind} {name}")]
    Missing {
        /// Kind of the object.
        kind: &'static str,
        /// Name of the object in hex.
        name: String,
    },
    /// No entry for the folder of the source.
    #[error("has no folder {0}, which its source names after the second colon")]
    NoFolder(String),
    /// A file, a link or a submodule in place of the folder.
    #[error("has no folder at {0} but something else")]
    NotFolder(String),
    /// A name that no checkout can have.
    #[error("has an entry of the name {0}, which git does not allow")]
    Name(String),
    /// A submodule, whose files are in another repository.
    #[error("has the submodule {0}, which cannot be read: move it out of the folder of the catalog")]
    Submodule(String),
    /// A pointer file of Git LFS, whose content is elsewhere.
    #[error("stores {0} with Git LFS, which cannot be read: store it without")]
    Lfs(String),
    /// A path that is refused, or two entries of one path.
    #[error(transparent)]
    Unpack(#[from] LayerError),
    /// Another commit than the one that was resolved.
    #[error("changed between two requests: poll again to read the new content")]
    Changed,
}

impl GitFault {
    /// Returns true if the same commit would fail again. The answers of a server may be others the next time.
    pub const fn is_of_content(&self) -> bool {
        matches!(
            self,
            Self::NotCommit(_)
                | Self::LargeDelta(_)
                | Self::NoFolder(_)
                | Self::NotFolder(_)
                | Self::Name(_)
                | Self::Submodule(_)
                | Self::Lfs(_)
                | Self::Unpack(_)
        )
    }
}

/// The reason for which the reading of a pack stopped.
#[cfg(feature = "git")]
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadStopped {
    #[error(transparent)]
    Fault(#[from] GitFault),
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    #[error(transparent)]
    Unpack(#[from] UnpackError),
}

impl GitLocation {
    pub(super) fn error(&self, source: GitFault) -> Error {
        Error::Git {
            repository: self.to_string(),
            source,
        }
    }

    #[cfg(feature = "git")]
    pub(super) fn stopped(&self, stopped: ReadStopped) -> Error {
        match stopped {
            ReadStopped::Fault(fault) => self.error(fault),
            // The pack is known by the source, not by its digest.
            ReadStopped::Unpack(UnpackError::Layer { source, .. }) => self.error(source.into()),
            ReadStopped::Unpack(UnpackError::Limit(limit)) | ReadStopped::Limit(limit) => Error::Limit(LimitExceeded {
                place: format!("{self}, {}", limit.place),
                ..limit
            }),
            ReadStopped::Unpack(other) => other.into(),
        }
    }
}
