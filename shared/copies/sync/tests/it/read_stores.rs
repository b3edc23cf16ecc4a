//! The checks of reading that every store has to pass, on a mirror over HTTP and on an archive.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Response, header};
use bytes::Bytes;
use futures_util::stream;
use model::Key;
use storekit::MemoryStore;
use storekit::conformance::read_conformance;
use sync::PackOptions;

use crate::archives::{export, open};
use crate::kit::{V1, mirror};
use crate::servers::{Lie, http_mirror, server};

/// Returns the objects of a store that a mirror serves and an archive holds.
fn served(memory: &MemoryStore) -> BTreeMap<Key, Bytes> {
    let mut objects = memory.objects();
    objects.retain(|key, _| key.is_immutable() || matches!(key, Key::Current(_)));
    objects
}

async fn check_mirror(lie: Lie) {
    let (memory, _) = mirror(&[V1]).await;
    let address = server(memory.clone(), lie).await;
    let origin = http_mirror(address, HeaderMap::new());
    read_conformance(&origin, &served(&memory)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mirror_over_http_passes_the_checks_of_reading() {
    check_mirror(Arc::new(|_, _, _| None)).await;
}

/// A proxy may pass bodies on in chunks.
#[tokio::test(flavor = "multi_thread")]
async fn mirror_that_tells_no_sizes_passes_the_checks_of_reading() {
    check_mirror(Arc::new(|_, _, bytes| {
        let chunks = stream::iter([Ok::<_, std::io::Error>(bytes)]);
        Some(Response::new(Body::from_stream(chunks)))
    }))
    .await;
}

/// As a CDN answers that compresses what it is asked to compress.
#[tokio::test(flavor = "multi_thread")]
async fn mirror_that_compresses_documents_passes_the_checks_of_reading() {
    check_mirror(Arc::new(|key, _, bytes| {
        if key.is_immutable() {
            return None;
        }
        let response = Response::builder().header(header::CONTENT_ENCODING, "gzip");
        Some(response.body(testkit::gzip(&bytes).into()).unwrap())
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_passes_the_checks_of_reading() {
    let (memory, store) = mirror(&[V1]).await;
    for volume_bytes in [None, Some(20_000)] {
        let options = PackOptions {
            whole: true,
            volume_bytes,
            ..PackOptions::default()
        };
        let archive = open(&export(&store, options).await).await.unwrap();
        read_conformance(&*archive, &served(&memory)).await;
    }
}
