use std::{fmt::Write, time::Duration};

use prost::Message;
use rstest::rstest;
use server::ServerLimits;
use testkit::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tonic::Streaming;

use crate::client::Client;
use crate::fixture::{MemoryCatalogs, TestServer, custom_schemas, package};

/// Number of bundles, and of Metas of the schema `custom`, that do not fit into the buffers of a
/// connection.
pub(crate) const METAS: usize = 20_000;
/// Its messages are made of the lines of the catalog while they are sent.
const CUSTOM_SCHEMAS: &str = "/api.ExperimentalRegistry/ExperimentalListPackageCustomSchemas";

/// Returns the lines of a package that has all of them.
pub(crate) fn long_package() -> String {
    let entry = |at| {
        format!(
            r#"{{"name":"meta-{at:05}","replaces":"meta-{:05}"}}"#,
            at + 1
        )
    };
    let entries: Vec<String> = (0..METAS).map(entry).collect();
    let channel = format!(r#""entries":[{}],"name":"c""#, entries.join(","));
    let mut lines = package("p").replace(r#""entries":[{"name":"b"}],"name":"c""#, &channel);
    for at in 0..METAS {
        let name = format!(r#""name":"meta-{at:05}","package":"p""#);
        writeln!(lines, r#"{{{name},"schema":"custom"}}"#).unwrap();
        writeln!(
            lines,
            r#"{{"image":"registry.example/namespace/bundle",{name},"properties":[],"schema":"olm.bundle"}}"#
        )
        .unwrap();
    }
    lines
}

/// Starts a stream of all of them, and takes the first one.
async fn begun(method: &str) -> (MemoryCatalogs, TestServer, Streaming<Vec<u8>>) {
    let catalogs = MemoryCatalogs::new().with("a", long_package()).await;
    let (server, client) = TestServer::connected(&catalogs, "lab").await;
    let request = if method == CUSTOM_SCHEMAS {
        custom_schemas().encode_to_vec()
    } else {
        Vec::new()
    };
    let mut stream = client.start(method, &request).await.unwrap();
    stream.message().await.unwrap().unwrap();
    (catalogs, server, stream)
}

#[rstest]
#[case::of_lines(CUSTOM_SCHEMAS)]
#[case::of_the_index("/api.Registry/ListBundles")]
#[tokio::test]
async fn stream_makes_messages_only_as_fast_as_they_are_taken(#[case] method: &str) {
    let (catalogs, server, mut stream) = begun(method).await;
    sleep(Duration::from_millis(300)).await;
    let found = server.metrics();
    // It would have ended if the messages were made ahead of the client.
    assert!(found.contains("calls_running 1"), "{found}");

    // A publication does not change a stream that runs.
    catalogs.with("a", package("other")).await;
    let client = Client::connect(server.port, "lab").await;
    assert_eq!(
        client
            .call("/api.Registry/ListBundles", b"")
            .await
            .unwrap()
            .len(),
        1
    );
    let mut taken = 1;
    while stream.message().await.unwrap().is_some() {
        taken += 1;
    }
    assert_eq!(taken, METAS);
}

#[tokio::test]
async fn stream_that_is_given_up_ends() {
    let (_catalogs, server, stream) = begun(CUSTOM_SCHEMAS).await;
    drop(stream);
    let cancelled =
        r#"{method="ExperimentalListPackageCustomSchemas",catalog="a",code="CANCELLED"} 1"#;
    until("the call ends", async || {
        server.metrics().contains(cancelled)
    })
    .await;
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
    let mut silent = TcpStream::connect(("127.0.0.1", server.port))
        .await
        .unwrap();
    silent.write_all(b"PRI * HTTP/2.0").await.unwrap();
    // The server sends its settings and then closes.
    let mut settings = Vec::new();
    let closed = timeout(Duration::from_secs(5), silent.read_to_end(&mut settings)).await;
    assert!(
        closed.is_ok(),
        "a client that does not speak HTTP/2 is kept"
    );
    client
        .call("/api.Registry/ListPackages", b"")
        .await
        .unwrap();
}
