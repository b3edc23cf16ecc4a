//! Memory that requests take for the bytes that a client sends.
#![expect(clippy::print_stdout, reason = "`--nocapture` shows what was measured")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use futures_util::{StreamExt, stream};
use grpc::{GrpcMetrics, RegistryCatalogs, router};
use http_body_util::BodyExt;
use prometheus_client::registry::Registry;
use reader::{PublishedCatalogs, ReaderSettings};
use server::{Server, ServerLimits, ServerMetrics};
use testkit::until;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::fixture::MemoryCatalogs;

const METHODS: [&str; 14] = [
    "/api.Registry/ListPackages",
    "/api.Registry/GetPackage",
    "/api.Registry/GetBundle",
    "/api.Registry/GetBundleForChannel",
    "/api.Registry/GetChannelEntriesThatReplace",
    "/api.Registry/GetBundleThatReplaces",
    "/api.Registry/GetChannelEntriesThatProvide",
    "/api.Registry/GetLatestChannelEntriesThatProvide",
    "/api.Registry/GetDefaultBundleThatProvides",
    "/api.Registry/ListBundles",
    "/api.ExperimentalRegistry/ExperimentalListPackageCustomSchemas",
    "/grpc.health.v1.Health/Check",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Largest message that a method takes, in bytes.
const LARGEST: usize = 8 << 10;

/// Memory that a call takes for whatever it says, in bytes.
const FLOOR: u64 = 48 << 10;

/// One thread, whose allocations are counted.
fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn api(runtime: &Runtime) -> Router {
    let catalogs = runtime.block_on(MemoryCatalogs::of(&["a"]));
    let published = PublishedCatalogs::new(catalogs.0.clone(), ReaderSettings::default());
    let catalogs = Arc::new(RegistryCatalogs::new(published, None, None));
    runtime.block_on(catalogs.prepare());
    router(catalogs, GrpcMetrics::register(&mut Registry::default()))
}

/// Messages of the largest size that a client may choose.
fn chosen_messages() -> Vec<(&'static str, Vec<u8>)> {
    let length = |length: usize| {
        let [low, high] = [length & 0x7f, length >> 7];
        [low as u8 | 0x80, high as u8]
    };
    let text = |field: u8, byte: u8| {
        let mut message = vec![field << 3 | 2];
        message.extend(length(LARGEST - 3));
        message.resize(LARGEST, byte);
        message
    };
    vec![
        ("first text", text(1, b'a')),
        ("third text", text(3, b'a')),
        ("control characters", text(1, 1)),
        ("many texts", b"\x0a\x02aa".repeat(LARGEST / 4)),
        ("unknown fields", b"\xf8\x07\x00".repeat(LARGEST / 3)),
        ("nested groups", vec![0x0b; LARGEST]),
        ("one byte", vec![0x0a]),
    ]
}

/// Returns the bytes of a request: a message that was announced with this length.
fn framed(announced: usize, message: &[u8]) -> Vec<u8> {
    let announced = u32::try_from(announced).unwrap().to_be_bytes();
    [&[0], &announced[..], message].concat()
}

async fn call(api: &Router, method: &str, sent: &Arc<Vec<u8>>, piece: usize) {
    let bytes = Arc::clone(sent);
    let pieces = stream::iter((0..sent.len()).step_by(piece)).map(move |start| {
        let end = bytes.len().min(start + piece);
        Ok::<_, std::io::Error>(Bytes::copy_from_slice(&bytes[start..end]))
    });
    let request = http::Request::post(format!("http://a.lab{method}"))
        .header("content-type", "application/grpc")
        .body(Body::from_stream(pieces))
        .unwrap();
    let response = api.clone().oneshot(request).await.unwrap();
    // Its end is an error for a client that has gone.
    drop(response.into_body().collect().await);
}

#[test]
fn request_takes_few_bytes_for_each_that_it_sends() {
    let runtime = one_thread();
    let api = api(&runtime);
    for method in METHODS {
        let mut most = (0.0, String::new());
        for (name, message) in chosen_messages() {
            for (announced, piece) in [
                (message.len(), LARGEST),
                (message.len(), 100),
                (LARGEST, LARGEST),
                (usize::MAX >> 33, LARGEST),
            ] {
                let sent = Arc::new(framed(announced, &message));
                let cost = allocation_counter::measure(|| {
                    runtime.block_on(call(&api, method, &sent, piece));
                });
                let place = format!("{method}, {name}, {announced} announced, pieces of {piece}");
                let limit = FLOOR + 20 * sent.len() as u64;
                assert!(cost.bytes_max <= limit, "{place}: {cost:?}");
                let ratio = cost.bytes_max as f64 / sent.len() as f64;
                if sent.len() > 1000 && ratio > most.0 {
                    most = (ratio, place);
                }
            }
        }
        println!("{:.1} bytes for one: {}", most.0, most.1);
    }
}

/// Returns the bytes of a connection of HTTP/2 with this many calls, each of which has announced the
/// largest message and sent one byte of it.
fn begun_calls(calls: u32) -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        [&head, payload].concat()
    };
    let field = |name: &str, value: &str| {
        let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
        // A field that later calls name by one byte (RFC 7541, section 6.2.1).
        [&[0x40][..], &text(name), &text(value)].concat()
    };
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    sent.extend(frame(4, 0, 0, &[]));
    for call in 0..calls {
        let mut head = [
            // POST and http, of the static table.
            &[0x83, 0x86][..],
            &field(":path", "/api.Registry/GetPackage"),
            &field(":authority", "a.lab"),
            &field("content-type", "application/grpc"),
            &field("a", ""),
        ]
        .concat();
        // The last field again, nearly as often as the limit for a head allows.
        head.resize(head.len() + 900, 0x80 | 62);
        sent.extend(frame(1, 4, 2 * call + 1, &head));
        sent.extend(frame(0, 0, 2 * call + 1, &framed(LARGEST, b"a")));
    }
    sent
}

#[test]
fn calls_whose_requests_are_on_their_way_take_few_bytes() {
    let runtime = one_thread();
    let api = api(&runtime);
    let limits = ServerLimits::grpc();
    let calls = limits.streams;
    let sent = begun_calls(calls);
    let size = sent.len() as u64;
    let cost = allocation_counter::measure(|| {
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address: SocketAddr = listener.local_addr().unwrap();
            let server = Server::new(limits, ServerMetrics::default(), None);
            let serving = tokio::spawn(server.run(listener, api, CancellationToken::new()));
            // On a thread of its own, so that what the client allocates is not counted.
            let client = thread::spawn(move || {
                let mut socket = TcpStream::connect(address).unwrap();
                socket.write_all(&sent).unwrap();
                socket
                    .set_read_timeout(Some(Duration::from_secs(2)))
                    .unwrap();
                let mut answer = [0; 64 << 10];
                // Settings and windows, and nothing for a call.
                while socket.read(&mut answer).is_ok_and(|count| count > 0) {}
                socket
            });
            until("the client has waited", async || client.is_finished()).await;
            serving.abort();
        });
    });
    // The connection is still open. At most is what its heads take until the calls begin.
    let held = u64::try_from(cost.bytes_current).unwrap();
    println!(
        "{calls} calls, {size} bytes sent: {held} bytes, {} at most",
        cost.bytes_max
    );
    assert!(held <= 12 * (1 << 10) * u64::from(calls), "{cost:?}");
    assert!(cost.bytes_max <= 100 * size, "{cost:?}");
}
