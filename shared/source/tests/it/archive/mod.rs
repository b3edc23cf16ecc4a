//! Archives on a web server.

mod changes;
mod content;
mod limits;
mod server;

use catalog_mirror_source::{Error, Source};
use testkit::{FileServer, Layer};

use crate::kit::{client, pull_source as pull};

const PATH: &str = "/catalog.tar.gz";

fn source(server: &FileServer, folder: &str) -> Source {
    format!("{}{folder}", server.url(PATH)).parse().unwrap()
}

/// Reads an archive at `folder`, which is empty or starts with `#`.
async fn files(archive: &Layer, folder: &str) -> Result<Vec<String>, Error> {
    let server = FileServer::start().await;
    server.put(PATH, archive.archive());
    let (sink, _) = pull(&client(server.host()), &source(&server, folder)).await?;
    Ok(sink.list())
}

fn two_folders() -> Layer {
    Layer::new().file("a/x.yaml", "x").file("b/y.yaml", "y")
}
