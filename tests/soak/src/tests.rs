//! Visitors find nothing wrong with a server that is right, and everything with one that lies.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    middleware::map_response,
    response::Response,
    routing::get,
};
use http::{StatusCode, header::CONTENT_TYPE};
use image::{Images, Source};
use poll::{Catalog, Mirror};
use store::{MemoryStore, Store};
use tokio::{net::TcpListener, time::Instant};

use crate::{
    client::Line,
    report::never_checked,
    rude::Manner,
    run::{arrive, line},
    tally::Counts,
    visitor::{Shared, Visitor},
};

const CATALOGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../catalogs");
/// Far more than it takes for every route to have had its turn.
const LONG: Duration = Duration::from_secs(120);

/// The example catalog as it was published, changed, and published again.
async fn mirror() -> Router {
    let store = MemoryStore::new();
    for version in ["v1", "v2", "v1"] {
        let catalog = Catalog {
            name: "demo".parse().unwrap(),
            source: Source::Dir(Path::new(CATALOGS).join(version)),
            availability: layout::Availability::Available,
            interval: None,
            policy: None,
            lookaside: None,
        };
        let images = Images::new(image::Settings::default()).unwrap();
        let mirror = Mirror::new(
            images,
            Arc::new(store.clone()),
            poll::Settings::default(),
            poll::Metrics::default(),
        );
        let report = mirror.turn(&catalog, true).await;
        assert!(report.outcome.is_success(), "{:?}", report.error_text());
    }
    let store: Arc<dyn Store> = Arc::new(store);
    let page = Router::new().route("/metrics", get(async || "# EOF\n"));
    serve::router(store, serve::Settings::default(), serve::Metrics::default()).merge(page)
}

async fn listen(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Visits until every path has been checked or something is wrong, in both versions of HTTP.
async fn visit(router: Router) -> (Counts, Vec<String>) {
    let server = listen(router).await;
    let shared = Arc::new(Shared::default());
    let Ok(paths) = arrive(line(server, 0), &shared).await else {
        return (shared.tally.counts(), vec!["all".to_owned()]);
    };
    let line = |http2| Line {
        http2,
        ..line(server, 0)
    };
    let mut visitors =
        [false, true].map(|http2| Visitor::new(line(http2), Duration::from_millis(1), Arc::clone(&shared)));
    let begin = Instant::now();
    loop {
        for visitor in &mut visitors {
            if let Err(wrong) = visitor.journey().await {
                visitor.complain(&wrong);
            }
            for manner in [Manner::Slow, Manner::HangsUp] {
                if let Err(wrong) = visitor.rudely(manner).await {
                    visitor.complain(&wrong);
                }
            }
        }
        let counts = shared.tally.counts();
        let left = never_checked(&counts, &paths);
        if left.is_empty() || !counts.wrongs.is_empty() || begin.elapsed() > LONG {
            return (counts, left);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_wrong_with_what_is_right() {
    let (counts, left) = visit(mirror().await).await;
    assert!(counts.wrongs.is_empty(), "{:?}", counts.wrongs);
    assert!(left.is_empty(), "{left:?}");
    assert!(counts.routes["(slow readers)"].checked > 0);
}

/// The last byte of all lines.
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
async fn a_flipped_bit_is_found() {
    let (counts, _) = visit(mirror().await.layer(map_response(flipped))).await;
    let words: Vec<&str> = counts.wrongs.keys().map(|(_, word)| *word).collect();
    assert!(
        words.iter().all(|word| ["hash", "coding", "document"].contains(word)),
        "{words:?}"
    );
    assert!(!words.is_empty());
}

/// Every fourth answer fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_found() {
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
        counts.wrongs.keys().any(|(_, word)| *word == "status"),
        "{:?}",
        counts.wrongs
    );
}
