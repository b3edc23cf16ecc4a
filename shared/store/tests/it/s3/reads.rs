//! Results of reads for the answers of a server.

use std::{sync::OnceLock, time::Duration};

use catalog_mirror_store::s3::{S3Settings, S3Store};
use catalog_mirror_store::{Condition, Fetched, Get, Store as _, StoreError, StoreExt as _};
use model::text::chain;
use testkit::{S3, S3Call, S3Fault};

use super::support::{current, open, open_at, settings};

async fn with_object(server: &S3, settings: &S3Settings) -> S3Store {
    let store = open(server, settings).await;
    store
        .put(&current(), "0123456789".into(), Condition::Always)
        .await
        .unwrap();
    store
}

async fn failure(store: &S3Store) -> String {
    let read = store.read_all(&current(), 100).await;
    chain(&read.expect_err("the read fails"))
}

#[tokio::test]
async fn get_of_damaged_body_fails() {
    let server = S3::start().await;
    let store = with_object(&server, &settings(&server)).await;
    server.script(S3Call::Get, S3Fault::Corrupt);
    let text = failure(&store).await;
    assert!(text.contains("checksum"), "{text}");
    assert_eq!(store.read_all(&current(), 100).await.unwrap().0, "0123456789");
}

#[tokio::test]
async fn get_of_short_body_fails() {
    let server = S3::start().await;
    let store = with_object(&server, &settings(&server)).await;
    server.script(S3Call::Get, S3Fault::Cut(5));
    failure(&store).await;
    let range = Get {
        range: Some(2..9),
        unless: None,
    };
    server.script(S3Call::Get, S3Fault::Cut(3));
    let Ok(Fetched::Object(object)) = store.get(&current(), range).await else {
        panic!("the head of the answer is whole");
    };
    let read: Result<Vec<_>, _> = futures_util::TryStreamExt::try_collect(object.body).await;
    assert!(matches!(read, Err(StoreError::Failed { .. })), "{read:?}");
}

#[tokio::test]
async fn get_of_stalled_body_fails() {
    let server = S3::start().await;
    let mut settings = settings(&server);
    settings.stall_timeout = Duration::from_secs(1);
    let store = with_object(&server, &settings).await;
    server.script(S3Call::Get, S3Fault::Stall(5));
    failure(&store).await;
}

/// S3 answers 403 for a missing object to clients without the right to list.
#[tokio::test]
async fn get_denied_explains_the_missing_right() {
    let server = S3::start().await;
    let store = with_object(&server, &settings(&server)).await;
    server.script(S3Call::Get, S3Fault::Status(403, "AccessDenied"));
    let text = failure(&store).await;
    for part in ["403", "AccessDenied", "s3:ListBucket"] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn get_from_missing_bucket_is_a_failure() {
    let server = S3::start().await;
    let store = open_at(&server, &settings(&server), "s3://another/mirror").await;
    let text = failure(&store).await;
    assert!(text.contains("NoSuchBucket"), "{text}");
}

#[tokio::test]
async fn get_sends_no_other_requests() {
    let server = S3::start().await;
    let store = open(&server, &settings(&server)).await;
    for _ in 0..2 {
        assert!(
            store
                .read_all(&current(), 100)
                .await
                .is_err_and(|error| error.is_not_found())
        );
    }
    assert_eq!(server.requests().len(), server.count(S3Call::Get));
    assert_eq!(server.names(), Vec::<String>::new());
}

#[tokio::test]
async fn presign_sends_no_request() {
    let server = S3::start().await;
    let store = open(&server, &settings(&server)).await;
    let url = store.presign(&current(), Duration::from_secs(60)).await.unwrap();
    let start = format!("{}/bucket/mirror/{}?", server.url(), current());
    assert!(url.starts_with(&start), "{url}");
    assert!(
        url.contains("X-Amz-Expires=60") && url.contains("X-Amz-Signature="),
        "{url}"
    );
    assert!(server.requests().is_empty());
    assert!(store.presign(&current(), Duration::from_secs(8 * 86400)).await.is_err());
}

#[tokio::test]
async fn presign_has_the_bucket_in_the_host_by_default() {
    let server = S3::start().await;
    let mut settings = settings(&server);
    settings.endpoint = Some("https://s3.example.com".into());
    for (path_style, start) in [
        (true, "https://s3.example.com/bucket/mirror/catalogs/a/current.json?"),
        (false, "https://bucket.s3.example.com/mirror/catalogs/a/current.json?"),
    ] {
        settings.path_style = path_style;
        let store = open(&server, &settings).await;
        let url = store.presign(&current(), Duration::from_secs(60)).await.unwrap();
        assert!(url.starts_with(start), "{url}");
    }
}

#[tokio::test]
async fn debug_of_store_hides_credentials() {
    let server = S3::start().await;
    let store = open(&server, &settings(&server)).await;
    assert_eq!(format!("{store:?}"), "S3Store(\"s3://bucket/mirror\")");
}

#[tokio::test]
async fn get_goes_through_the_proxy_of_its_url() {
    static PROXY: OnceLock<String> = OnceLock::new();
    let server = S3::start().await;
    with_object(&server, &settings(&server)).await;
    PROXY.set(server.url().replace("//", "//robot:hunter2@")).unwrap();
    let mut settings = S3Settings {
        endpoint: Some("http://s3.invalid:9000".into()),
        proxy_of: Some(|url| Ok(url.contains("//s3.invalid:9000/").then(|| PROXY.get().unwrap().clone()))),
        attempts: 1,
        ..settings(&server)
    };
    let store = open(&server, &settings).await;
    assert_eq!(store.read_all(&current(), 100).await.unwrap().0, "0123456789");
    settings.proxy_of = Some(|_| Ok(Some("http://robot:hunter2@127.0.0.1:1".into())));
    let text = failure(&open(&server, &settings).await).await;
    assert!(text.contains("through the proxy 127.0.0.1:1"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    settings.proxy_of = Some(|_| Ok(Some("socks5://127.0.0.1:1".into())));
    let text = failure(&open(&server, &settings).await).await;
    assert!(text.contains("socks5"), "{text}");
    settings.proxy_of = Some(|_| Err("of a reason".into()));
    let text = failure(&open(&server, &settings).await).await;
    assert!(text.contains("of a reason"), "{text}");
}
