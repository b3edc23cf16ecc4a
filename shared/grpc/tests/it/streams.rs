use std::{fmt::Write, time::Duration};

use catalog_mirror_grpc::olm_v0::api::CustomSchemasRequest;
use prost::Message;
use server::ServerLimits;
use testkit::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::client::Client;
use crate::fixture::{MemoryCatalogs, TestServer, package};

/// Number of bundles or other Metas of a catalog that does not fit into the buffers of a connection.
const METAS: usize = 20_000;

/// Returns a catalog of Metas of a custom schema, whose lines are read while they are sent.
fn custom_lines() -> String {
    let mut lines = package("p");
    for at in 0..METAS {
        writeln!(lines, r#"{{"name":"meta-{at:05}","package":"p","schema":"custom"}}"#).unwrap();
    }
    lines
}

/// Returns a catalog of bundles without images, whose contents are sent by `ListBundles`.
fn large_lines() -> String {
    let mut lines = String::from(r#"{"defaultChannel":"c","name":"p","schema":"olm.package"}"#);
    let names: Vec<String> = (0..METAS)
        .map(|at| format!("bundle-with-a-long-name-{at:05}"))
        .collect();
    let entry = |pair: &[String]| format!(r#",{{"name":"{}","replaces":"{}"}}"#, pair[1], pair[0]);
    let entries: String = names.windows(2).map(entry).collect();
    let first = format!(r#"{{"name":"{}"}}"#, names[0]);
    lines +=
        &format!("\n{{\"entries\":[{first}{entries}],\"name\":\"c\",\"package\":\"p\",\"schema\":\"olm.channel\"}}\n");
    for name in names {
        lines += &format!(r#"{{"image":"","name":"{name}","package":"p","properties":[],"schema":"olm.bundle"}}"#);
        lines.push('\n');
    }
    lines
}

#[tokio::test]
async fn stream_makes_messages_only_as_fast_as_they_are_taken() {
    let catalogs = MemoryCatalogs::new().with("a", custom_lines()).await;
    let (server, client) = TestServer::connected(&catalogs, "lab").await;
    let request = CustomSchemasRequest {
        schema: "custom".to_owned(),
        package_name: "p".to_owned(),
    };
    let method = "/api.ExperimentalRegistry/ExperimentalListPackageCustomSchemas";
    let mut stream = client.start(method, &request.encode_to_vec()).await.unwrap();
    stream.message().await.unwrap().unwrap();
    sleep(Duration::from_millis(300)).await;
    let found = server.metrics();
    // It would have ended if the messages were made ahead of the client.
    assert!(found.contains("calls_running 1"), "{found}");

    // A publication does not change a stream that runs.
    catalogs.clone().with("a", package("other")).await;
    let mut taken = 1;
    while stream.message().await.unwrap().is_some() {
        taken += 1;
    }
    assert_eq!(taken, METAS);
}

#[tokio::test]
async fn stream_that_is_given_up_ends() {
    let catalogs = MemoryCatalogs::new().with("a", large_lines()).await;
    let (server, client) = TestServer::connected(&catalogs, "lab").await;
    let mut stream = client.start("/api.Registry/ListBundles", b"").await.unwrap();
    stream.message().await.unwrap().unwrap();
    drop(stream);
    let cancelled = r#"calls_total{method="ListBundles",catalog="a",code="CANCELLED"} 1"#;
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
