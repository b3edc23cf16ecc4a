//! Git repositories, read by git(1) as a process of its own.
//!
//! ```text
//! resolve  GET info/refs, git ls-remote -> commit -> revision
//! read     GET info/refs, git fetch     -> pack of the commit in a folder for temporary files
//!          git archive                  -> tar archive of its folder -> FileSink, as for archives on servers
//! ```
//!
//! The first request is this program's own: it finds wrong URLs, credentials and certificates with
//! the same words as for archives.
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

use std::{collections::BTreeMap, sync::Arc};

use oci::{Digest, FileSink};
use parking_lot::Mutex;

use crate::git::program::GitProgram;
use crate::server::WebClient;
use crate::{Error, GitLocation, Pull};

/// The commits that were resolved last, by the text of their source. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct GitCommits(Arc<Mutex<BTreeMap<String, String>>>);

impl GitCommits {
    /// Returns the revision that a source in a repository has now.
    pub(crate) async fn resolve(
        &self,
        client: WebClient<'_>,
        location: &GitLocation,
    ) -> Result<Digest, Error> {
        let program = GitProgram::open(client, location).await?;
        let commit = program.session.server.redacted(program.resolve().await)?;
        let revision = location.revision(&commit);
        self.0.lock().insert(location.to_string(), commit);
        Ok(revision)
    }

    /// Passes the files of the commit with the revision `expected` to `sink`.
    pub(crate) async fn read<S: FileSink + 'static>(
        &self,
        client: WebClient<'_>,
        location: &GitLocation,
        expected: &Digest,
        sink: S,
    ) -> Result<(S, Pull), Error> {
        let program = GitProgram::open(client, location).await?;
        let reading = async {
            let known = self.0.lock().get(&location.to_string()).cloned();
            let commit = program.commit(known, expected).await?;
            program.read(&commit, sink).await
        };
        program.session.server.redacted(reading.await)
    }
}
