//! Git repositories on a server.

mod content;
mod hostile;
mod limits;
mod refs;
mod server;

use catalog_mirror_source::{Error, Pull, Source, SourceSettings, Sources, TreeFault};
use tempfile::TempDir;
use testkit::{FileServer, GitRepo};

use crate::kit::{Collect, auth_file, chain, client_with, pull_source};

const PATH: &str = "/owner/repo.git";

const MAIN: &str = "refs/heads/main";

/// A repository, the server in front of it, and a client.
struct GitHost {
    server: FileServer,
    repo: GitRepo,
    images: Sources,
}

impl GitHost {
    async fn start() -> Self {
        Self::with(|_| ()).await
    }

    /// Starts with changed settings of the client.
    async fn with(change: impl FnOnce(&mut SourceSettings)) -> Self {
        let server = FileServer::start().await;
        let repo = GitRepo::default();
        repo.serve(&server, PATH);
        let images = client_with(server.host(), change);
        Self { server, repo, images }
    }

    /// Makes the server want a password, and returns a client that has it in a file of this folder.
    fn with_password(&self, dir: &TempDir) -> Sources {
        self.server.require("robot", "hunter22");
        client_with(self.server.host(), |settings| {
            settings.auth_files = vec![auth_file(dir, &self.server, "hunter22")];
        })
    }

    /// Commits these files to the main branch.
    fn commit(&self, files: &[(&str, &str)]) -> String {
        let commit = self.repo.commit(files);
        self.point(&commit);
        commit
    }

    fn point(&self, commit: &str) {
        self.repo.set(MAIN, commit);
        self.repo.set("HEAD", commit);
    }

    /// Returns the source with this end, which is empty or starts with `#`.
    fn source(&self, end: &str) -> Source {
        format!("git:{}{end}", self.server.url(PATH)).parse().unwrap()
    }

    async fn pull(&self, end: &str) -> Result<(Collect, Pull), Error> {
        pull_source(&self.images, &self.source(end)).await
    }

    async fn files(&self, end: &str) -> Result<Vec<String>, Error> {
        Ok(self.pull(end).await?.0.list())
    }

    /// Returns the fault of a read that fails, and its text with all causes.
    #[track_caller]
    fn fault(&self, read: Result<Vec<String>, Error>) -> (TreeFault, String) {
        let error = read.unwrap_err();
        let text = chain(&error);
        assert!(text.contains(PATH), "{text}");
        match error {
            Error::Tree { source, .. } => (source, text),
            _ => panic!("no fault of git: {text}"),
        }
    }
}
