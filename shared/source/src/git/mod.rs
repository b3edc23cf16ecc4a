//! Git repositories, read by git(1) as a process of its own.
//!
//! ```text
//! resolve  GET info/refs, git ls-remote -> commit -> revision
//! read     GET info/refs, git fetch     -> pack of the commit in a folder for temporary files
//!          git archive                  -> tar archive of its folder -> FileSink, as for archives on servers
//! ```
//!
//! The first request is this program's own: it finds wrong URLs, credentials and certificates with the same words as for archives.
//!
//! | a server or repository may | result |
//! |---|---|
//! | redirect | followed on the same server only, and by this program only: git follows none |
//! | ask for a password, or for a helper, hook or submodule | git has no terminal, no settings of the machine and only http(s) |
//! | send a pack without end | killed at `compressedBytes` or `downloadBytes`; the kernel ends a file at that size too |
//! | take time or memory without end | all processes are killed at the time-out, and each has at most [`program`]'s memory |
//! | send other objects than were asked for | git checks all hashes, with detection of SHA-1 collisions |
//! | hold many files, large files or long paths | the limits of an archive |
//! | name files `..` | the rules of an archive; nothing is checked out |
//! | hold submodules below the folder | refused, with their path |
//! | hold links | followed inside the folder, as in an archive |
//!
//! Attributes (`export-ignore`, filters, line ends) are not applied: files are as they are stored.

mod program;

use std::collections::BTreeMap;
use std::sync::Arc;

use oci::{Digest, FileSink};
use parking_lot::Mutex;

use crate::error::Error;
use crate::git::program::GitProgram;
use crate::location::GitLocation;
use crate::sources::{Pull, Sources};
use crate::tree::TreeFault;

/// The commits that were resolved last, by the text of their source. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct GitCommits(Arc<Mutex<BTreeMap<String, String>>>);

/// One resolve or read of one repository.
pub(crate) struct GitRequest<'a> {
    sources: &'a Sources,
    location: &'a GitLocation,
}

impl<'a> GitRequest<'a> {
    pub(crate) const fn new(sources: &'a Sources, location: &'a GitLocation) -> Self {
        Self { sources, location }
    }

    /// Returns the revision that the source has now.
    pub(crate) async fn resolve(self) -> Result<Digest, Error> {
        let program = GitProgram::open(&self).await?;
        let commit = program.resolve().await.map_err(|error| program.redact(error))?;
        let revision = self.location.revision(&commit);
        self.sources.commits.0.lock().insert(self.location.to_string(), commit);
        Ok(revision)
    }

    /// Passes the files of the commit with the revision `expected` to `sink`.
    pub(crate) async fn read<S: FileSink + 'static>(self, expected: &Digest, sink: S) -> Result<(S, Pull), Error> {
        let program = GitProgram::open(&self).await?;
        let reading = async {
            let commit = self.commit(&program, expected).await?;
            program.read(&commit, sink).await
        };
        reading.await.map_err(|error| program.redact(error))
    }

    /// Returns the commit with the revision `expected`: the one that was resolved, even if its branch has moved since.
    async fn commit(&self, program: &GitProgram<'_>, expected: &Digest) -> Result<String, Error> {
        let known = match self.location.pinned {
            Some(_) => self.location.reference.clone(),
            None => self.sources.commits.0.lock().get(&self.location.to_string()).cloned(),
        };
        let is_expected = |commit: &String| self.location.revision(commit) == *expected;
        if let Some(commit) = known.filter(is_expected) {
            return Ok(commit);
        }
        let commit = program.resolve().await?;
        if is_expected(&commit) {
            Ok(commit)
        } else {
            Err(self.location.error(TreeFault::Changed))
        }
    }
}

impl GitLocation {
    fn error(&self, source: TreeFault) -> Error {
        Error::Tree {
            place: self.to_string(),
            source,
        }
    }
}
