//! A server with short limits and one large answer, for tests by hand.
//!
//!     cargo run -p catalog-mirror-server --example short_limits -- ADDRESS [USERS [CERTIFICATE KEY]]

use std::{env, sync::Arc, time::Duration};

use axum::{Router, body::Bytes, routing::get};
use catalog_mirror_server::{Server, ServerLimits, ServerMetrics};
use prometheus_client::{encoding::text, registry::Registry};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, files @ ..] = arguments.as_slice() else {
        return Err("the address to listen on is missing".into());
    };
    let limits = ServerLimits {
        connections: 200,
        first_request: 3 * SECOND,
        idle: 3 * SECOND,
        stalled: 2 * SECOND,
        drain: 2 * SECOND,
        ..ServerLimits::default()
    };
    let mut registry = Registry::default();
    let mut server = Server::new(limits, ServerMetrics::register(&mut registry));
    if let [users, ..] = files {
        server = server.with_users(users.into())?;
    }
    if let [_, certificate, key] = files {
        server = server.with_tls(certificate.into(), key.into())?;
    }
    let body = Bytes::from(vec![b'a'; 32 << 20]);
    let registry = Arc::new(registry);
    let metrics = move || {
        let mut page = String::new();
        let encoded = text::encode(&mut page, &registry);
        std::future::ready(encoded.map(|()| page).unwrap_or_default())
    };
    let router = Router::new()
        .route("/", get(async || "here\n"))
        .route("/large", get(async move || body))
        .route("/metrics", get(metrics));
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stopping.cancel();
        }
    });
    server.run(TcpListener::bind(address).await?, router, stop).await;
    Ok(())
}
