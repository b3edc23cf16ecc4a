//! Behaviour of R2 that Cloudflare documents: a test for each sentence that the store depends on,
//! with its page. `S3Builder::like_r2` behaves so.

use std::time::Duration;

use futures_util::future::join_all;
use store::s3::S3Store;
use store::{Condition, Store as _, StoreError, StoreExt as _};
use storekit::conformance::{current, object};
use testkit::{S3, S3Call, S3Fault};

use super::support::{open, settings};

const SECOND: Duration = Duration::from_secs(1);

async fn r2(limit: Duration) -> (S3, S3Store) {
    let server = S3::builder().like_r2(limit).start().await;
    let store = open(&settings(&server)).await;
    (server, store)
}

/// One object can be written once in a second, and more is answered with 429
/// (<https://developers.cloudflare.com/r2/platform/limits/>,
/// <https://developers.cloudflare.com/r2/api/error-codes/>, `TooManyRequests`). A first publication
/// writes `catalogs.json` twice.
#[tokio::test]
async fn puts_of_one_object_on_r2_wait_for_its_limit() {
    let (server, store) = r2(SECOND).await;
    let checked = store.check_writes().await;
    checked.expect("the probe writes one object several times");
    server.reset();
    let first = store
        .put(&current(), "1".into(), Condition::CreateOnly)
        .await
        .unwrap();
    let replace = Condition::Replace(first);
    store
        .put(&current(), "2".into(), replace.clone())
        .await
        .unwrap();
    let late = store.put(&current(), "3".into(), replace).await;
    assert!(late.is_err_and(|error| error.is_conflict()));
    assert_eq!(
        server.count(S3Call::Put),
        5,
        "the second and the third were sent twice"
    );
    let others = [b"a", b"b", b"c"].map(async |bytes| {
        let key = object(bytes);
        store
            .put(&key, bytes.to_vec().into(), Condition::CreateOnly)
            .await
    });
    assert!(join_all(others).await.iter().all(Result::is_ok));
    assert_eq!(
        server.count(S3Call::Put),
        8,
        "the limit is one of each object"
    );
}

/// Three writers that add to one object within seconds lose nothing. They write different bytes:
/// after a refusal that is repeated, equal bytes count as written.
#[tokio::test]
async fn racing_writers_on_r2_lose_nothing() {
    let (server, store) = r2(SECOND).await;
    store
        .put(&current(), "".into(), Condition::Always)
        .await
        .unwrap();
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
    let mut names = server
        .object("mirror/catalogs/a/current.json")
        .unwrap()
        .bytes
        .to_vec();
    names.sort();
    assert_eq!(names, b"abc");
}

/// The region is `auto`, and `us-east-1` is another name of it
/// (<https://developers.cloudflare.com/r2/api/s3/api/#bucket-region>).
#[tokio::test]
async fn requests_to_r2_name_its_region() {
    let server = S3::start().await;
    for (named, region) in [(None, "us-east-1"), (Some("auto"), "auto")] {
        server.reset();
        let settings = store::s3::S3Settings {
            region: named.map(Into::into),
            ..settings(&server)
        };
        let store = open(&settings).await;
        store
            .put(&current(), "1".into(), Condition::Always)
            .await
            .unwrap();
        let signed = server.requests()[0]
            .header("authorization")
            .unwrap()
            .to_owned();
        assert!(
            signed.contains(&format!("/{region}/s3/aws4_request")),
            "{signed}"
        );
    }
}

/// The code of <https://developers.cloudflare.com/r2/api/error-codes/>; `writes.rs` has the others.
#[tokio::test]
async fn range_beyond_the_end_on_r2_has_its_own_error() {
    let (server, store) = r2(Duration::ZERO).await;
    store
        .put(&current(), "1".into(), Condition::Always)
        .await
        .unwrap();
    server.script(S3Call::Get, S3Fault::Status(416, "InvalidRange"));
    let got = store.open(&current(), Some(7..9)).await;
    assert!(matches!(
        got,
        Err(StoreError::RangeNotSatisfiable { size: 1, .. })
    ));
}
