//! Git repositories on a server.

mod content;
mod hostile;
mod limits;
mod refs;
mod server;

use catalog_mirror_source::{EmptyLayers, Error, Pull, Source, SourceSettings, Sources, TreeFault};
use testkit::{FileServer, GitRepo, Registry};

use crate::kit::{Collect, chain, plain, settings};

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
    async fn with(change: impl Fn(&mut SourceSettings)) -> Self {
        let server = FileServer::start().await;
        let repo = GitRepo::default();
        repo.serve(&server, PATH);
        let mut settings = settings(&Registry::start().await);
        settings.http.plain_http = plain(&[server.host()]);
        change(&mut settings);
        let images = Sources::new(settings).unwrap();
        Self { server, repo, images }
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
        let source = self.source(end);
        let digest = self.images.resolve(&source).await?;
        let none = EmptyLayers::default();
        self.images.read(&source, &digest, &none, Collect::default()).await
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
