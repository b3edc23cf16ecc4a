//! Behaviour of R2 that Cloudflare documents: a test for each sentence that the store depends on, with its page. `S3Builder::like_r2` behaves so.

use std::{collections::BTreeSet, time::Duration};

use catalog_mirror_store::s3::S3Store;
use catalog_mirror_store::{Condition, Get, Store as _, StoreError, StoreExt as _};
use futures_util::future::join_all;
use testkit::{S3, S3Call, S3Fault};

use super::support::{current, object, open, settings};

const SECOND: Duration = Duration::from_secs(1);

async fn r2(limit: Duration) -> (S3, S3Store) {
    let server = S3::builder().like_r2(limit).start().await;
    let store = open(&settings(&server)).await;
    (server, store)
}

/// One object can be written once in a second, and more is answered with 429 (<https://developers.cloudflare.com/r2/platform/limits/>,
/// <https://developers.cloudflare.com/r2/api/error-codes/>, `TooManyRequests`). A first publication writes `catalogs.json` twice.
#[tokio::test]
async fn puts_of_one_object_on_r2_wait_for_its_limit() {
    let (server, store) = r2(SECOND).await;
    store
        .check_writes()
        .await
        .expect("the probe writes one object several times");
    server.reset();
    let first = store.put(&current(), "1".into(), Condition::CreateOnly).await.unwrap();
    let second = store
        .put(&current(), "2".into(), Condition::Replace(first.clone()))
        .await;
    second.unwrap();
    let late = store.put(&current(), "3".into(), Condition::Replace(first)).await;
    assert!(late.is_err_and(|error| error.is_conflict()));
    assert_eq!(server.count(S3Call::Put), 5, "the second and the third were sent twice");
    let others = [b"a", b"b", b"c"].map(async |bytes| {
        let key = object(bytes);
        store.put(&key, bytes.to_vec().into(), Condition::CreateOnly).await
    });
    assert!(join_all(others).await.iter().all(Result::is_ok));
    assert_eq!(server.count(S3Call::Put), 8, "the limit is one of each object");
}

/// Three writers that add to one object within seconds lose nothing.
#[tokio::test]
async fn racing_writers_on_r2_lose_nothing() {
    let (server, store) = r2(SECOND).await;
    store.put(&current(), "".into(), Condition::Always).await.unwrap();
    let writers = ["a", "b", "c"].map(async |name| {
        loop {
            let (bytes, info) = store.read_all(&current(), 9).await.unwrap();
            let put = [&bytes[..], name.as_bytes()].concat();
            let put = store
                .put(&current(), put.into(), Condition::Replace(info.version))
                .await;
            if !put.as_ref().is_err_and(StoreError::is_conflict) {
                break put;
            }
        }
    });
    for written in join_all(writers).await {
        written.expect("each writer gets its turn");
    }
    let mut names = server.object("mirror/catalogs/a/current.json").unwrap().bytes.to_vec();
    names.sort();
    assert_eq!(names, b"abc");
}

/// The region is `auto`, and `us-east-1` is another name of it (<https://developers.cloudflare.com/r2/api/s3/api/#bucket-region>).
#[tokio::test]
async fn requests_to_r2_name_its_region() {
    let server = S3::start().await;
    for (named, region) in [(None, "us-east-1"), (Some("auto"), "auto")] {
        server.reset();
        let settings = catalog_mirror_store::s3::S3Settings {
            region: named.map(Into::into),
            ..settings(&server)
        };
        let store = open(&settings).await;
        store.put(&current(), "1".into(), Condition::Always).await.unwrap();
        let signed = server.requests()[0].header("authorization").unwrap().to_owned();
        assert!(signed.contains(&format!("/{region}/s3/aws4_request")), "{signed}");
    }
}

/// R2 has no answer `100 Continue` (<https://developers.cloudflare.com/r2/api/s3/extensions/#auto-creating-buckets-on-upload>), wants
/// `Content-Length` (<https://developers.cloudflare.com/r2/api/error-codes/>, `MissingContentLength`), and keeps the type, the coding and the
/// caching rule of `PutObject`, whose list of fields has no tags, access lists and keys of KMS (<https://developers.cloudflare.com/r2/api/s3/api/>).
#[tokio::test]
async fn requests_to_r2_have_only_fields_that_it_knows() {
    let (server, store) = r2(Duration::ZERO).await;
    let large = vec![7; 3 << 20];
    let mut staged = store.stage().await.unwrap();
    staged.write(large.clone().into()).await.unwrap();
    staged.commit(&object(&large), Condition::CreateOnly).await.unwrap();
    store.put(&current(), "1".into(), Condition::CreateOnly).await.unwrap();
    let known = BTreeSet::from([
        "x-amz-checksum-mode",
        "x-amz-checksum-sha256",
        "x-amz-content-sha256",
        "x-amz-date",
        "x-amz-user-agent",
    ]);
    for request in server.requests() {
        assert_eq!(request.header("expect"), None);
        assert!(request.call != S3Call::Put || request.header("content-length").is_some());
        let fields = request.headers.keys().map(String::as_str);
        let unknown: Vec<_> = fields
            .filter(|name| name.starts_with("x-amz-") && !known.contains(name))
            .collect();
        assert_eq!(unknown, [""; 0], "{request:?}");
    }
    let stored = server.object(&format!("mirror/{}", object(&large))).unwrap();
    assert_eq!(
        stored.headers.len(),
        3,
        "type, coding and caching rule: {:?}",
        stored.headers
    );
}

/// The code of <https://developers.cloudflare.com/r2/api/error-codes/>; `writes.rs` has the others.
#[tokio::test]
async fn range_beyond_the_end_on_r2_has_its_own_error() {
    let (server, store) = r2(Duration::ZERO).await;
    store.put(&current(), "1".into(), Condition::Always).await.unwrap();
    server.script(S3Call::Get, S3Fault::Status(416, "InvalidRange"));
    let range = Get {
        range: Some(7..9),
        unless: None,
    };
    let got = store.get(&current(), range).await;
    assert!(matches!(got, Err(StoreError::RangeNotSatisfiable { size: 1, .. })));
}
