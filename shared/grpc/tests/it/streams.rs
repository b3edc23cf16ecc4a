use std::{fmt::Write, time::Duration};

use prost::Message;
use server::ServerLimits;
use testkit::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tonic::Streaming;

use crate::client::Client;
use crate::fixture::{MemoryCatalogs, TestServer, custom_schemas, package};

/// Number of Metas that do not fit into the buffers of a connection.
const METAS: usize = 20_000;

/// Starts a stream of Metas of a custom schema, whose lines are read while they are sent, and takes the first one.
async fn begun() -> (MemoryCatalogs, TestServer, Streaming<Vec<u8>>) {
    let mut lines = package("p");
    for at in 0..METAS {
        writeln!(lines, r#"{{"name":"meta-{at:05}","package":"p","schema":"custom"}}"#).unwrap();
    }
    let catalogs = MemoryCatalogs::new().with("a", lines).await;
    let (server, client) = TestServer::connected(&catalogs, "lab").await;
    let method = "/api.ExperimentalRegistry/ExperimentalListPackageCustomSchemas";
    let mut stream = client.start(method, &custom_schemas().encode_to_vec()).await.unwrap();
    stream.message().await.unwrap().unwrap();
    (catalogs, server, stream)
}

#[tokio::test]
async fn stream_makes_messages_only_as_fast_as_they_are_taken() {
    let (catalogs, server, mut stream) = begun().await;
    sleep(Duration::from_millis(300)).await;
    let found = server.metrics();
    // It would have ended if the messages were made ahead of the client.
    assert!(found.contains("calls_running 1"), "{found}");

    // A publication does not change a stream that runs.
    catalogs.with("a", package("other")).await;
    let mut taken = 1;
    while stream.message().await.unwrap().is_some() {
        taken += 1;
    }
    assert_eq!(taken, METAS);
}

#[tokio::test]
async fn stream_that_is_given_up_ends() {
    let (_catalogs, server, stream) = begun().await;
    drop(stream);
    let cancelled = r#"{method="ExperimentalListPackageCustomSchemas",catalog="a",code="CANCELLED"} 1"#;
    until("the call ends", async || server.metrics().contains(cancelled)).await;
}

#[tokio::test]
async fn client_may_wait_with_its_first_request_but_must_speak_http2() {
    let limits = ServerLimits {
        first_request: Duration::from_millis(100),
        ..ServerLimits::grpc()
    };
    let catalogs = MemoryCatalogs::of(&["a"]).await;
    let server = TestServer::start(&catalogs, None, limits).await;
    let client = Client::connect(server.port, "lab").await;
    let mut silent = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    silent.write_all(b"PRI * HTTP/2.0").await.unwrap();
    // The server sends its settings and then closes.
    let mut settings = Vec::new();
    let closed = timeout(Duration::from_secs(5), silent.read_to_end(&mut settings)).await;
    assert!(closed.is_ok(), "a client that does not speak HTTP/2 is kept");
    client.call("/api.Registry/ListPackages", b"").await.unwrap();
}
