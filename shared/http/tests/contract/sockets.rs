//! Answers as they leave a socket, where the HTTP library adds fields of its own.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{fixture::LINES, world::World};

/// Serves a catalog without caches, so that every body is a stream, and returns the head of the answer to a request.
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

#[tokio::test]
async fn head_of_a_body_of_unknown_length_does_not_claim_zero() {
    // Compressed on the fly: nothing stored is a gzip of one package.
    let path = "/catalogs/demo/packages/alpha HTTP/1.1\r\naccept-encoding: gzip";
    let get = head_of(&format!("GET {path}")).await;
    assert!(get.contains("transfer-encoding: chunked"), "{get}");
    let head = head_of(&format!("HEAD {path}")).await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(!head.contains("content-length"), "{head}");
}

#[tokio::test]
async fn head_of_a_body_of_known_length_announces_it() {
    let head = head_of("HEAD /catalogs/demo/all.json HTTP/1.1").await;
    assert!(head.contains(&format!("content-length: {}", LINES.len())), "{head}");
}

#[tokio::test]
async fn not_modified_claims_no_length() {
    let answer = head_of("GET /catalogs/demo/all.json HTTP/1.1\r\nif-none-match: *").await;
    assert!(answer.starts_with("http/1.1 304"), "{answer}");
    assert!(!answer.contains("content-length"), "{answer}");
}
