//! Archives on a web server.

mod changes;
mod content;
mod limits;
mod server;

use catalog_mirror_source::{Error, Source, SourceSettings, Sources};
use testkit::{FileServer, Layer, Registry};

use crate::kit::{plain, pull_source as pull, settings};

const PATH: &str = "/catalog.tar.gz";

/// Settings for a server, without its certificate.
async fn settings_for(server: &FileServer) -> SourceSettings {
    let mut settings = settings(&Registry::start().await);
    settings.http.plain_http = plain(&[server.host()]);
    settings
}

async fn images(server: &FileServer) -> Sources {
    Sources::new(settings_for(server).await).unwrap()
}

async fn images_with(server: &FileServer, change: impl Fn(&mut SourceSettings)) -> Sources {
    let mut settings = settings_for(server).await;
    change(&mut settings);
    Sources::new(settings).unwrap()
}

fn source(server: &FileServer, folder: &str) -> Source {
    format!("{}{folder}", server.url(PATH)).parse().unwrap()
}

/// Reads an archive at `folder`, which is empty or starts with `#`.
async fn files(archive: &Layer, folder: &str) -> Result<Vec<String>, Error> {
    let server = FileServer::start().await;
    server.put(PATH, archive.archive());
    let (sink, _) = pull(&images(&server).await, &source(&server, folder)).await?;
    Ok(sink.list())
}

fn two_folders() -> Layer {
    Layer::new().file("a/x.yaml", "x").file("b/y.yaml", "y")
}
