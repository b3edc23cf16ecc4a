//! The clients find no violation in a correct server, and find every fault of an incorrect one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use api::{HttpMetrics, HttpSettings};
use axum::{Router, body::to_bytes, middleware::map_response, response::Response, routing::get};
use http::{StatusCode, header::CONTENT_TYPE};
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics, PollOptions};
use reader::{PublishedCatalogs, ReaderSettings};
use source::{Source, SourceSettings, Sources};
use storekit::MemoryStore;
use tokio::{net::TcpListener, time::Instant};

use crate::client::{Client, Shared};
use crate::report::never_checked;
use crate::run::{discover, line};
use crate::slow_client::SlowBehaviour;
use crate::statistics::Counts;

const CATALOGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../catalogs");
/// Maximum duration of a test, far above the time that all routes need.
const LONG: Duration = Duration::from_secs(120);

/// Returns a server of the example catalog, published, changed, and published again.
async fn mirror() -> Router {
    let store = MemoryStore::new();
    let images = Sources::new(SourceSettings::default()).unwrap();
    let settings = MirrorSettings::default();
    let mirror = Mirror::new(
        images,
        Arc::new(store.clone()),
        settings,
        PollMetrics::default(),
    );
    for version in ["v1", "v2", "v1"] {
        let catalog = Catalog::new(
            "demo".parse().unwrap(),
            Source::Dir(Path::new(CATALOGS).join(version)),
        );
        let options = PollOptions {
            force: true,
            ..PollOptions::default()
        };
        let report = mirror.poll(&catalog, options).await;
        assert!(report.outcome.is_success(), "{:?}", report.error_text());
    }
    let page = Router::new().route("/metrics", get(async || "# EOF\n"));
    let catalogs = PublishedCatalogs::new(Arc::new(store), ReaderSettings::default());
    api::router(catalogs, HttpSettings::default(), HttpMetrics::default()).merge(page)
}

/// Runs scenarios over both versions of HTTP until every path is checked or a violation is found.
async fn visit(router: Router) -> (Counts, Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let shared = Arc::new(Shared::default());
    let paths = match discover(line(server, 0), &shared).await {
        Ok(paths) => paths,
        Err(violation) => {
            let all = format!("all: {violation}");
            return (shared.statistics.counts(), vec![all]);
        }
    };
    // The first client speaks HTTP/1.1, the third one HTTP/2.
    let mut clients = [0, 2].map(|number| {
        Client::new(
            line(server, number),
            Duration::from_millis(1),
            Arc::clone(&shared),
        )
    });
    let begin = Instant::now();
    let mut round = 0;
    loop {
        // In some rounds only, because each of them waits for most of a second.
        let slow = match round % 10 {
            0 => Some(SlowBehaviour::Slow),
            1 => Some(SlowBehaviour::HangUp),
            _ => None,
        };
        round += 1;
        for client in &mut clients {
            client.work(slow).await;
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

/// Returns the labels of the violations that the clients find.
async fn labels(router: Router) -> BTreeSet<&'static str> {
    let (counts, _) = visit(router).await;
    counts
        .violations
        .into_keys()
        .map(|(_, label)| label)
        .collect()
}

/// Changes the last byte of every answer with JSON lines.
async fn flipped(response: Response) -> Response {
    let (head, body) = response.into_parts();
    let mut body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
    let is_lines = head
        .headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind == "application/jsonl");
    if is_lines && let Some(last) = body.last_mut() {
        *last ^= 1;
    }
    Response::from_parts(head, body.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_bit_is_found() {
    let found = labels(mirror().await.layer(map_response(flipped))).await;
    let expected = ["hash", "coding", "document"].into();
    assert!(!found.is_empty() && found.is_subset(&expected), "{found:?}");
}

/// Turns every fourth answer into a 503.
async fn failing(mut response: Response) -> Response {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    if COUNT.fetch_add(1, Ordering::Relaxed) % 4 == 3 {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_answer_is_found() {
    let found = labels(mirror().await.layer(map_response(failing))).await;
    assert!(found.contains("status"), "{found:?}");
}
