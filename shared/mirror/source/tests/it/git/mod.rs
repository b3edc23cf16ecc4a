//! Git repositories on a server.

mod content;
mod hostile;
mod limits;
mod refs;
mod server;

use std::ops::Deref;

use source::{Error, SourceSettings};
use testkit::GitRepo;

use crate::kit;
use crate::web::WebHost;

const PATH: &str = "/owner/repo.git";

const MAIN: &str = "refs/heads/main";

/// Name of an object that no repository here has.
const MISSING: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

/// A repository, the server in front of it, and a client.
struct GitHost {
    web: WebHost,
    repo: GitRepo,
}

impl Deref for GitHost {
    type Target = WebHost;

    fn deref(&self) -> &WebHost {
        &self.web
    }
}

impl GitHost {
    /// Starts with a commit of these files.
    async fn of(files: &[(&str, &str)]) -> Self {
        let host = Self::with(|_| {}).await;
        host.commit(files);
        host
    }

    /// Starts without commits, and with changed settings of the client.
    async fn with(change: impl FnOnce(&mut SourceSettings)) -> Self {
        let web = WebHost::start("git:", PATH, change).await;
        let repo = GitRepo::default();
        repo.serve(&web.server, PATH);
        Self { web, repo }
    }

    fn with_password(self, sent: &str) -> Self {
        let web = self.web.with_password(sent);
        Self { web, ..self }
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
}

/// Compares the words for a failure. Returns its text with all causes, which names the repository.
#[track_caller]
fn failed<T>(result: Result<T, Error>, want: &str) -> String {
    let text = kit::failed(result, want);
    assert!(text.contains(PATH), "{text}");
    text
}
