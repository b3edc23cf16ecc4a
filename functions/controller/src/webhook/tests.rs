//! Reviews over sockets, and the memory that they take.
#![expect(clippy::print_stdout, reason = "`--nocapture` shows what was measured")]

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use axum::body::{Body, Bytes};
use clap::Parser;
use futures_util::{Stream, StreamExt, stream};
use serde_json::json;
use testkit::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::review::tests::review;
use crate::{flags::Flags, wiring};

async fn post_body(body: &str) -> Response {
    answer(Request::new(body.to_owned().into())).await
}

#[tokio::test]
async fn bad_requests_are_refused() {
    let without = |field: &str| {
        let mut review = review("ClusterCatalog", &json!({"metadata": {"name": "a"}}));
        review["request"][field].take();
        review.to_string()
    };
    for body in [
        String::new(),
        "{".to_owned(),
        "{}".to_owned(),
        json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}).to_string(),
        without("uid"),
        review("ClusterCatalog", &json!({})).to_string(),
        review("ClusterCatalog", &json!("a")).to_string(),
    ] {
        assert_eq!(
            post_body(&body).await.status(),
            StatusCode::BAD_REQUEST,
            "{body}"
        );
    }
    let good = post_body(&without("name")).await;
    assert_eq!(good.status(), StatusCode::OK);
    assert_eq!(good.headers()[CONTENT_TYPE], "application/json");
}

/// Starts the webhook on a free port.
async fn served() -> (SocketAddr, JoinHandle<()>) {
    let listener = wiring::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let flags = Flags::try_parse_from(["catalogd"]).unwrap();
    let server = wiring::server(&flags, Default::default(), false).unwrap();
    let serving = server
        .with_content()
        .run(listener, routes(), CancellationToken::new());
    (address, tokio::spawn(serving))
}

#[tokio::test]
async fn server_passes_reviews_up_to_the_limit() {
    let (address, _serving) = served().await;
    let post = async |path: &str, body: &[u8]| {
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(body).await.unwrap();
        let mut status = [0; 12];
        socket.read_exact(&mut status).await.unwrap();
        String::from_utf8(status.to_vec()).unwrap()
    };
    let good = review("ClusterCatalog", &json!({"metadata": {"name": "a"}}));
    let mut good = good.to_string().into_bytes();
    assert_eq!(post(PATH, &good).await, "HTTP/1.1 200");
    assert_eq!(post("/mutate", &good).await, "HTTP/1.1 404");
    good.resize(BODY_MAX, b' ');
    assert_eq!(post(PATH, &good).await, "HTTP/1.1 200");
    good.push(b' ');
    assert_eq!(post(PATH, &good).await, "HTTP/1.1 413");
}

#[tokio::test(start_paused = true)]
async fn review_that_does_not_arrive_is_given_up() {
    let endless =
        axum::body::Body::from_stream(futures_util::stream::pending::<std::io::Result<Vec<u8>>>());
    let answered = answer(Request::new(endless)).await;
    assert_eq!(answered.status(), StatusCode::REQUEST_TIMEOUT);
}

/// Bodies of the largest size that hold a small review and content that a client has chosen.
fn chosen_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let families = [
        ("small objects", r#""spec":["#, r#"{"":0},"#, "0]"),
        ("numbers", r#""spec":["#, "0,", "0]"),
        ("empty texts", r#""spec":["#, r#""","#, "0]"),
        ("nested lists", r#""spec":"#, "[", "0"),
        ("fields", r#""spec":{"#, r#""a":0,"#, r#""z":0}"#),
        ("escaped text", r#""spec":""#, r"\n", r#"""#),
        ("escaped name of a field", r#"""#, r"\n", r#"":0"#),
        (
            "labels",
            r#""metadata":{"labels":{"#,
            r#""a":"","#,
            r#""z":""}}"#,
        ),
        (
            "long label",
            r#""metadata":{"labels":{"a":""#,
            "a",
            r#""}}"#,
        ),
        ("long name", r#""metadata":{"name":""#, "a", r#""}"#),
        (
            "long escaped name",
            r#""metadata":{"name":""#,
            r"\n",
            r#""}"#,
        ),
    ];
    let good = review("ClusterCatalog", &json!({"metadata": {"name": "a"}})).to_string();
    let (head, tail) = good.split_once(r#""metadata":{"name":"a"}"#).unwrap();
    let body = |(name, start, part, end): (&'static str, &str, &str, &str)| {
        let room = BODY_MAX - head.len() - tail.len() - start.len() - end.len();
        let chosen = part.repeat(room / part.len());
        (
            name,
            [head, start, &chosen, end, tail].concat().into_bytes(),
        )
    };
    families.into_iter().map(body).collect()
}

/// Runs on one thread, whose allocations are counted.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(future)
}

#[test]
fn review_takes_four_bytes_for_each_of_its_body_at_most() {
    for (name, body) in chosen_bodies() {
        let body = Arc::new(body);
        // As the server reads it, and as a client may send it.
        for size in [64 << 10, 100] {
            let pieces = pieces(Arc::clone(&body), size);
            let cost = allocation_counter::measure(|| {
                block_on(answer(Request::new(Body::from_stream(pieces))));
            });
            println!("{name}, pieces of {size}: {} bytes", cost.bytes_max);
            let limit = 4 * BODY_MAX as u64;
            assert!(
                cost.bytes_max <= limit,
                "{name}, pieces of {size}: {cost:?}"
            );
        }
    }
}

/// Returns a body in pieces, each of which is made when it is asked for.
fn pieces(body: Arc<Vec<u8>>, size: usize) -> impl Stream<Item = io::Result<Bytes>> {
    stream::iter((0..body.len()).step_by(size)).map(move |start| {
        let end = body.len().min(start + size);
        Ok(Bytes::copy_from_slice(&body[start..end]))
    })
}

/// Posts a body, over HTTP/1.1, and reads the status. The server gives up what does not come in
/// time.
fn post_alone(address: SocketAddr, body: &[u8]) {
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    socket.write_all(head.as_bytes()).unwrap();
    if socket.write_all(body).is_ok() {
        drop(socket.read_exact(&mut [0; 12]));
    }
}

#[test]
fn sixteen_posts_at_a_time_take_the_memory_of_four() {
    // The family that takes most.
    let (_, body) = chosen_bodies().swap_remove(3);
    let body = Arc::new(body);
    let cost = allocation_counter::measure(|| {
        block_on(async {
            let (address, serving) = served().await;
            // Threads of their own: what clients allocate is not counted.
            let clients = (0..16).map(|_| {
                let body = Arc::clone(&body);
                thread::spawn(move || post_alone(address, &body))
            });
            let clients: Vec<_> = clients.collect();
            until("all are answered", async || {
                clients.iter().all(thread::JoinHandle::is_finished)
            })
            .await;
            serving.abort();
        });
    });
    println!("{} bytes", cost.bytes_max);
    let limit = 4 * 4 * BODY_MAX as u64;
    assert!(cost.bytes_max <= limit, "{cost:?}");
}
