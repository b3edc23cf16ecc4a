//! The clients find no violation in a correct server, and find every fault of an incorrect one.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    middleware::map_response,
    response::Response,
    routing::get,
};
use http::{StatusCode, header::CONTENT_TYPE};
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics, PollOptions};
use source::{Source, Sources};
use store::Store;
use storekit::MemoryStore;
use tokio::{net::TcpListener, time::Instant};

use crate::{
    client::{Client, Shared},
    connection::ConnectionOptions,
    report::never_checked,
    run::{discover, line},
    slow_client::SlowBehaviour,
    statistics::Counts,
};

const CATALOGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../catalogs");
/// Maximum duration of a test, far above the time that all routes need.
const LONG: Duration = Duration::from_secs(120);

/// Returns a server of the example catalog, published, changed, and published again.
async fn mirror() -> Router {
    let store = MemoryStore::new();
    for version in ["v1", "v2", "v1"] {
        let catalog = Catalog::new("demo".parse().unwrap(), Source::Dir(Path::new(CATALOGS).join(version)));
        let images = Sources::new(source::SourceSettings::default()).unwrap();
        let mirror = Mirror::new(
            images,
            Arc::new(store.clone()),
            MirrorSettings::default(),
            PollMetrics::default(),
        );
        let options = PollOptions {
            force: true,
            ..PollOptions::default()
        };
        let report = mirror.poll(&catalog, options).await;
        assert!(report.outcome.is_success(), "{:?}", report.error_text());
    }
    let store: Arc<dyn Store> = Arc::new(store);
    let page = Router::new().route("/metrics", get(async || "# EOF\n"));
    http_api::router(
        reader::PublishedCatalogs::new(store, reader::ReaderSettings::default()),
        http_api::HttpSettings::default(),
        http_api::HttpMetrics::default(),
    )
    .merge(page)
}

async fn listen(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Runs scenarios over both versions of HTTP until every path is checked or a violation is found.
async fn visit(router: Router) -> (Counts, Vec<String>) {
    let server = listen(router).await;
    let shared = Arc::new(Shared::default());
    let Ok(paths) = discover(line(server, 0), &shared).await else {
        return (shared.statistics.counts(), vec!["all".to_owned()]);
    };
    let line = |http2| ConnectionOptions {
        http2,
        ..line(server, 0)
    };
    let mut clients =
        [false, true].map(|http2| Client::new(line(http2), Duration::from_millis(1), Arc::clone(&shared)));
    let begin = Instant::now();
    let mut rounds = 0;
    loop {
        // In some rounds only, because each of them waits for most of a second.
        let slow: &[_] = match rounds % 10 {
            0 => &[SlowBehaviour::Slow, SlowBehaviour::HangUp],
            _ => &[],
        };
        rounds += 1;
        for client in &mut clients {
            if let Err(violation) = client.run_scenario().await {
                client.record_violation(&violation);
            }
            for &behaviour in slow {
                if let Err(violation) = client.read_slowly(behaviour).await {
                    client.record_violation(&violation);
                }
            }
        }
        let counts = shared.statistics.counts();
        let left = never_checked(&counts, &paths);
        if left.is_empty() || !counts.violations.is_empty() || begin.elapsed() > LONG {
            return (counts, left);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn correct_server_has_no_violations() {
    let (counts, left) = visit(mirror().await).await;
    assert!(counts.violations.is_empty(), "{:?}", counts.violations);
    assert!(left.is_empty(), "{left:?}");
    assert!(counts.routes["(slow readers)"].checked > 0);
}

/// Changes the last byte of every answer with JSON lines.
async fn flipped(response: Response) -> Response {
    let (head, body) = response.into_parts();
    let is_lines = head
        .headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind == "application/jsonl");
    let mut body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
    if is_lines && let Some(last) = body.last_mut() {
        *last ^= 1;
    }
    Response::from_parts(head, Body::from(Bytes::from(body)))
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_bit_is_found() {
    let (counts, _) = visit(mirror().await.layer(map_response(flipped))).await;
    let words: Vec<&str> = counts.violations.keys().map(|(_, word)| *word).collect();
    assert!(
        words.iter().all(|word| ["hash", "coding", "document"].contains(word)),
        "{words:?}"
    );
    assert!(!words.is_empty());
}

/// Every fourth answer is a 503.
#[tokio::test(flavor = "multi_thread")]
async fn failed_answer_is_found() {
    let count = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let failing = map_response(move |mut response: Response| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if number % 4 == 3 {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        std::future::ready(response)
    });
    let (counts, _) = visit(mirror().await.layer(failing)).await;
    assert!(
        counts.violations.keys().any(|(_, word)| *word == "status"),
        "{:?}",
        counts.violations
    );
}
