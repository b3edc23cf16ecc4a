//! Answers as they leave a socket, where the HTTP library adds fields of its own.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{fixture::LINES, world::World};

/// Serves a catalog without caches, so that every body is a stream, and returns the head of the
/// answer to a request.
async fn head_of(request: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = World::new().await.caching(0).router;
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = format!("{request}\r\nhost: mirror.lab\r\nconnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    server.abort();
    let answer = String::from_utf8_lossy(&answer);
    answer.split("\r\n\r\n").next().unwrap().to_lowercase()
}

/// The package is compressed as it is sent, because nothing stored is a gzip of one package.
#[tokio::test]
async fn length_is_announced_only_where_it_is_known() {
    let length = format!("content-length: {}", LINES.len());
    let package = "/catalogs/demo/packages/alpha HTTP/1.1\r\naccept-encoding: gzip";
    let all = "/catalogs/demo/all.json HTTP/1.1";
    for (request, status, framing) in [
        (
            format!("GET {package}"),
            "200",
            "transfer-encoding: chunked",
        ),
        (format!("HEAD {package}"), "200", ""),
        (format!("HEAD {all}"), "200", &length),
        (format!("GET {all}\r\nif-none-match: *"), "304", ""),
    ] {
        let head = head_of(&request).await;
        assert!(
            head.starts_with(&format!("http/1.1 {status}")),
            "{request}: {head}"
        );
        let is_framing = |line: &&str| {
            line.starts_with("content-length") || line.starts_with("transfer-encoding")
        };
        let found: String = head.lines().filter(is_framing).collect();
        assert_eq!(found, framing, "{request}");
    }
}
