//! Serves a folder, for benchmarks: `serve FOLDER LISTEN [LINES]`. With LINES, canonical JSON lines, these are
//! published first as the catalog `demo`.

#[path = "../tests/contract/fixture.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod fixture;

use std::sync::Arc;

use axum::serve::ListenerExt;
use reader::{PublishedCatalogs, ReaderSettings};
use store::FolderStore;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, listen, lines @ ..] = arguments.as_slice() else {
        return Err("usage: serve FOLDER LISTEN [LINES]".into());
    };
    let store = Arc::new(FolderStore::open(folder)?);
    if let [lines] = lines {
        let lines = std::fs::read_to_string(lines)?;
        let published = fixture::publish(store.as_ref(), fixture::Publication::default(), &lines).await;
        println!("{}", published.current.content_hash);
    }
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    if let Ok(bytes) = std::env::var("SEND_BUFFER") {
        socket.set_send_buffer_size(bytes.parse()?)?;
    }
    socket.bind(listen.parse()?)?;
    let listener = socket.listen(1024)?.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let settings = ReaderSettings {
        offload: catalog_mirror_http::offload,
        ..ReaderSettings::default()
    };
    let app = catalog_mirror_http::router(
        PublishedCatalogs::new(store, settings),
        catalog_mirror_http::HttpSettings::default(),
        catalog_mirror_http::HttpMetrics::default(),
    );
    Ok(axum::serve(listener, app).await?)
}
