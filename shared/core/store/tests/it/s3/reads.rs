//! Results of reads for the answers of a server.

use std::{sync::OnceLock, time::Duration};

use futures_util::TryStreamExt as _;
use model::text::chain;
use store::s3::{ProxyOfUrl, S3Settings, S3Store};
use store::{Condition, Store as _, StoreError, StoreExt as _};
use storekit::conformance::current;
use testkit::{S3, S3Call, S3Fault};

use super::support::{open, open_at, settings};

async fn with_object(settings: &S3Settings) -> S3Store {
    let store = open(settings).await;
    let put = store
        .put(&current(), "0123456789".into(), Condition::Always)
        .await;
    put.unwrap();
    store
}

async fn failure(store: &S3Store) -> String {
    let read = store.read_all(&current(), 100).await;
    chain(&read.expect_err("the read fails"))
}

/// S3 answers 403 for a missing object to clients without the right to list.
#[tokio::test]
async fn get_with_a_faulty_answer_fails_with_its_cause() {
    let server = S3::start().await;
    let mut settings = settings(&server);
    settings.stall_timeout = Duration::from_secs(1);
    let store = with_object(&settings).await;
    let rows: [(S3Fault, &[&str]); 4] = [
        (S3Fault::Corrupt, &["checksum"]),
        (S3Fault::Cut(5), &[]),
        (S3Fault::Stall(5), &["minimum throughput"]),
        (
            S3Fault::Status(403, "AccessDenied"),
            &["403", "AccessDenied", "s3:ListBucket"],
        ),
    ];
    for (fault, parts) in rows {
        server.script(S3Call::Get, fault.clone());
        let text = failure(&store).await;
        assert!(
            parts.iter().all(|part| text.contains(part)),
            "{fault:?}: {text}"
        );
    }
    let elsewhere = open_at(&settings, "s3://another/mirror").await;
    let text = failure(&elsewhere).await;
    assert!(text.contains("NoSuchBucket"), "{text}");
}

#[tokio::test]
async fn get_range_of_short_body_fails() {
    let server = S3::start().await;
    let store = with_object(&settings(&server)).await;
    server.script(S3Call::Get, S3Fault::Cut(3));
    let object = store
        .open(&current(), Some(2..9))
        .await
        .expect("the head is whole");
    let read: Result<Vec<_>, _> = object.body.try_collect().await;
    assert!(matches!(read, Err(StoreError::Failed { .. })), "{read:?}");
}

#[tokio::test]
async fn presign_names_bucket_and_time_and_sends_no_request() {
    let server = S3::start().await;
    let mut settings = settings(&server);
    let own = format!("{}/bucket", server.url());
    for (endpoint, path_style, start) in [
        (server.url(), true, own.as_str()),
        (
            "https://s3.example.com",
            true,
            "https://s3.example.com/bucket",
        ),
        (
            "https://s3.example.com",
            false,
            "https://bucket.s3.example.com",
        ),
    ] {
        settings.endpoint = Some(endpoint.into());
        settings.path_style = path_style;
        let store = open(&settings).await;
        let url = store
            .presign(&current(), Duration::from_secs(60))
            .await
            .unwrap();
        let path = format!("{start}/mirror/catalogs/a/current.json?");
        assert!(url.starts_with(&path), "{url}");
        let parts = ["X-Amz-Expires=60", "X-Amz-Signature="];
        assert!(parts.iter().all(|part| url.contains(part)), "{url}");
        assert!(
            store
                .presign(&current(), Duration::from_secs(8 * 86400))
                .await
                .is_err()
        );
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn debug_of_store_hides_credentials() {
    let server = S3::start().await;
    let store = open(&settings(&server)).await;
    assert_eq!(format!("{store:?}"), "S3Store(\"s3://bucket/mirror\")");
}

#[tokio::test]
async fn get_goes_through_the_proxy_of_its_url() {
    static PROXY: OnceLock<String> = OnceLock::new();
    let server = S3::start().await;
    with_object(&settings(&server)).await;
    PROXY
        .set(server.url().replace("//", "//robot:hunter2@"))
        .unwrap();
    let mut settings = S3Settings {
        endpoint: Some("http://s3.invalid:9000".into()),
        proxy_of: Some(|url| {
            Ok(url
                .contains("//s3.invalid:9000/")
                .then(|| PROXY.get().unwrap().clone()))
        }),
        attempts: 1,
        ..settings(&server)
    };
    let store = open(&settings).await;
    assert_eq!(
        store.read_all(&current(), 100).await.unwrap().0,
        "0123456789"
    );
    settings.proxy_of = Some(|_| Ok(Some("http://robot:hunter2@127.0.0.1:1".into())));
    let text = failure(&open(&settings).await).await;
    assert!(text.contains("through the proxy 127.0.0.1:1"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let refused: [(ProxyOfUrl, &str); 2] = [
        (|_| Ok(Some("socks5://127.0.0.1:1".into())), "socks5"),
        (|_| Err("of a reason".into()), "of a reason"),
    ];
    for (proxy_of, reason) in refused {
        settings.proxy_of = Some(proxy_of);
        let text = failure(&open(&settings).await).await;
        assert!(text.contains(reason), "{text}");
    }
}
