//! Git repositories, read by git(1) as a process of its own.
//!
//! ```text
//! resolve  GET info/refs, git ls-remote -> commit -> revision
//! read     GET info/refs, git fetch     -> pack of the commit in a folder for temporary files
//!          git ls-tree, git cat-file    -> names and files of its trees -> FileSink
//! ```
//!
//! The first request is this program's own: it finds wrong URLs, credentials and certificates with the same words as for archives.
//!
//! | a server or repository may | result |
//! |---|---|
//! | redirect | followed on the same server only, and by this program only: git follows none |
//! | ask for a password, or for a helper, hook or submodule | git has no terminal, no settings of the machine and only https |
//! | send a pack without end | killed at `compressedBytes` or `downloadBytes`; the kernel ends a file at that size too |
//! | take time or memory without end | all processes are killed at the time-out, and each has at most [`program`]'s memory |
//! | send other objects than were asked for | git checks all hashes, with detection of SHA-1 collisions |
//! | hold many files, large files or long paths | `entries`, `fileBytes`, `decompressedBytes`, `ratio`, `pathBytes`, `treeBytes` |
//! | name files `..` or `.git` | refused; nothing is checked out |
//! | hold submodules or pointers of Git LFS below the folder | refused, with their path |
//! | hold links | followed inside the folder, as in an archive |
//!
//! Attributes (`export-ignore`, filters, line ends) are not applied: files are as they are stored.

mod program;
mod tree;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fetch::Fetcher;
use oci::{Digest, FileSink, LayerError};

use crate::error::Error;
use crate::git::program::GitProgram;
use crate::location::GitLocation;
use crate::settings::SourceSettings;
use crate::sources::Pull;
use crate::web::WebSession;

/// The reason for which a git repository has no catalog that can be read.
#[derive(Debug, thiserror::Error)]
pub enum GitFault {
    /// No program `git` on the path.
    #[error(
        "it is read by git(1), which is not on the path: install git, or write the URL of an archive of the branch, \
         such as https://HOST/PATH.tar.gz"
    )]
    NoProgram,
    /// A server that does not speak git's protocol at the URL.
    #[error("it does not answer as a git repository: check the URL; some servers need .git at its end")]
    NotGit,
    /// A redirect to another server.
    #[error("its server redirects to {0}: write the URL there")]
    Redirected(String),
    /// An error of git or in a message of the server, cleaned for logs.
    #[error("git failed: {0}")]
    Failed(String),
    /// No branch or tag of the name.
    #[error("has no branch or tag {name}; it has {found}. A commit is named by all 40 digits of its hash")]
    NoRef {
        /// Name that the source has.
        name: String,
        /// Names that the repository has, separated by commas.
        found: String,
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
            Self::NoFolder(_)
                | Self::NotFolder(_)
                | Self::Name(_)
                | Self::Submodule(_)
                | Self::Lfs(_)
                | Self::Unpack(_)
        )
    }
}

impl GitLocation {
    fn error(&self, source: GitFault) -> Error {
        Error::Git {
            repository: self.to_string(),
            source,
        }
    }
}

/// The commits that were resolved last, by the text of their source. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct GitCommits(Arc<Mutex<BTreeMap<String, String>>>);

/// One resolve or read of one repository.
pub(crate) struct GitRequest<'a> {
    pub(crate) commits: &'a GitCommits,
    pub(crate) fetcher: &'a Fetcher,
    pub(crate) settings: &'a Arc<SourceSettings>,
    pub(crate) location: &'a GitLocation,
}

impl GitRequest<'_> {
    /// Returns the revision that the source has now.
    pub(crate) async fn resolve(self) -> Result<Digest, Error> {
        let session = self.session().await?;
        let resolving = async { self.program(&session).await?.resolve().await };
        let commit = resolving.await.map_err(|error| session.redact(error))?;
        let revision = self.location.revision(&commit);
        let mut commits = self.commits.0.lock().unwrap_or_else(PoisonError::into_inner);
        commits.insert(self.location.to_string(), commit);
        Ok(revision)
    }

    /// Passes the files of the commit with the revision `expected` to `sink`.
    pub(crate) async fn read<S: FileSink + 'static>(self, expected: &Digest, sink: S) -> Result<(S, Pull), Error> {
        let session = self.session().await?;
        let read = self.read_commit(&session, expected, sink).await;
        let (sink, fetched) = read.map_err(|error| session.redact(error))?;
        let mut pull = Pull::from(session.traffic());
        // Those of git: the list of what the server can, and the pack.
        pull.requests += 2;
        pull.bytes += fetched;
        pull.layers_fetched = 1;
        Ok((sink, pull))
    }

    async fn read_commit<S: FileSink + 'static>(
        &self,
        session: &WebSession,
        expected: &Digest,
        sink: S,
    ) -> Result<(S, u64), Error> {
        let program = self.program(session).await?;
        let known = self.location.reference().map(ToOwned::to_owned);
        let known = known.filter(|_| self.location.pinned().is_some()).or_else(|| {
            let commits = self.commits.0.lock().unwrap_or_else(PoisonError::into_inner);
            commits.get(&self.location.to_string()).cloned()
        });
        let commit = match known.filter(|commit| self.location.revision(commit) == *expected) {
            // The commit that was resolved, even if its branch has moved since.
            Some(commit) => commit,
            None => program.resolve().await?,
        };
        if self.location.revision(&commit) != *expected {
            return Err(self.location.error(GitFault::Changed));
        }
        let pack = program.fetch(&commit).await?;
        let sink = program.read(&commit, &pack.blob, sink).await?;
        Ok((sink, pack.blob.size))
    }

    async fn session(&self) -> Result<WebSession, Error> {
        WebSession::open(self.fetcher, self.settings, self.location.url()).await
    }

    async fn program(&self, session: &WebSession) -> Result<GitProgram<'_>, Error> {
        GitProgram::open(self.fetcher, session, self.settings, self.location).await
    }
}
