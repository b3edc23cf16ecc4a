//! Resolving and reading a catalog in a git repository.

use std::sync::PoisonError;

use oci::{Digest, FileSink};

use super::error::GitFault;
use super::location::GitLocation;
use super::server::GitServer;
use super::{GitCommits, GitRequest, tree};
use crate::error::Error;
use crate::layout::blocking;
use crate::sources::Pull;

impl GitRequest<'_> {
    /// Returns the revision of the commit that the source means now.
    pub(crate) async fn resolve(self) -> Result<Digest, Error> {
        let server = self.server().await?;
        let commit = server.resolve().await.map_err(|error| server.session.redact(error))?;
        let revision = self.location.revision(&commit);
        self.commits.set(self.location, commit);
        Ok(revision)
    }

    /// Passes the files of the commit that has the revision `expected` to `sink`.
    pub(crate) async fn read<S: FileSink + 'static>(self, expected: &Digest, sink: S) -> Result<(S, Pull), Error> {
        let server = self.server().await?;
        let read = self.read_commit(&server, expected, sink).await;
        let sink = read.map_err(|error| server.session.redact(error))?;
        let pull = Pull {
            layers_fetched: 1,
            ..server.session.traffic().into()
        };
        Ok((sink, pull))
    }

    async fn read_commit<S: FileSink + 'static>(
        &self,
        server: &GitServer<'_>,
        expected: &Digest,
        sink: S,
    ) -> Result<S, Error> {
        let known = self.commits.get(self.location);
        let known = self.location.commit().map(ToOwned::to_owned).or(known);
        let commit = match known.filter(|commit| self.location.revision(commit) == *expected) {
            // The commit that was resolved, even if its branch has moved since.
            Some(commit) => commit,
            None => server.resolve().await?,
        };
        if self.location.revision(&commit) != *expected {
            return Err(self.location.error(GitFault::Changed));
        }
        let copy = server.pack(&commit).await?;
        let (location, limits) = (self.location.clone(), self.settings.limits.clone());
        blocking(move || {
            let read = tree::read(&copy, &commit, location.folder(), &limits, sink);
            read.map_err(|stopped| location.stopped(stopped))
        })
        .await
    }

    async fn server(&self) -> Result<GitServer<'_>, Error> {
        GitServer::open(self.fetcher, self.settings, self.location).await
    }
}

impl GitCommits {
    fn get(&self, location: &GitLocation) -> Option<String> {
        let commits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        commits.get(&location.to_string()).cloned()
    }

    fn set(&self, location: &GitLocation, commit: String) {
        let mut commits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        commits.insert(location.to_string(), commit);
    }
}
