//! A web server with one source on it.

use source::{Digest, Error, Pull, Source, SourceSettings, Sources};
use testkit::FileServer;

use crate::kit::{Collect, client_with, password, pull_source};

/// A web server with an archive or a git repository at one path, and a client of it.
pub(crate) struct WebHost {
    pub(crate) server: FileServer,
    pub(crate) images: Sources,
    /// Text of the source, without its end.
    text: String,
}

impl WebHost {
    /// Starts with changed settings of the client. `scheme` is `git:` or empty.
    pub(crate) async fn start(
        scheme: &str,
        path: &str,
        change: impl FnOnce(&mut SourceSettings),
    ) -> Self {
        let server = FileServer::start().await;
        let images = client_with(server.host(), change);
        let text = format!("{scheme}{}", server.url(path));
        Self {
            server,
            images,
            text,
        }
    }

    /// Returns the source with this end, which is empty or starts with `#`.
    pub(crate) fn source(&self, end: &str) -> Source {
        format!("{}{end}", self.text).parse().unwrap()
    }

    pub(crate) async fn resolve(&self, end: &str) -> Result<Digest, Error> {
        self.images.resolve(&self.source(end)).await
    }

    pub(crate) async fn pull(&self, end: &str) -> Result<(Collect, Pull), Error> {
        pull_source(&self.images, &self.source(end)).await
    }

    pub(crate) async fn files(&self, end: &str) -> Result<Vec<String>, Error> {
        Ok(self.pull(end).await?.0.list())
    }

    /// Makes the server want a password, and the client send this one.
    pub(crate) fn with_password(mut self, sent: &str) -> Self {
        self.server.require("robot", "hunter22");
        let logins = password(self.server.host(), sent);
        self.images = self
            .images
            .with_settings(|settings| settings.logins = logins);
        self
    }
}
