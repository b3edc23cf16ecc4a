//! Archives on a web server.

mod changes;
mod content;
mod limits;
mod server;

use source::SourceSettings;
use testkit::Layer;

use crate::web::WebHost;

const PATH: &str = "/catalog.tar.gz";

async fn host(archive: &Layer) -> WebHost {
    host_but(archive, |_| {}).await
}

/// Starts a server with an archive, and a client with changed settings.
async fn host_but(archive: &Layer, change: impl FnOnce(&mut SourceSettings)) -> WebHost {
    let host = WebHost::start("", PATH, change).await;
    host.server.put(PATH, archive.archive());
    host
}

fn two_folders() -> Layer {
    Layer::new().file("a/x.yaml", "x").file("b/y.yaml", "y")
}
