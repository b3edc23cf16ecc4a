//! Results of writes for the answers of a server.

use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use model::{Sha256, text::chain};
use store::s3::{S3Settings, S3Store};
use store::{Condition, ReadStore as _, Staged, Store as _, StoreError, StoreExt as _, Version};
use storekit::conformance::{current, object, pattern};
use testkit::{S3, S3Call, S3Fault, S3Request, Say, Wire};

use super::support::{open, settings, shard};

/// Returns a store that has run its probe, so that the server records the requests of a test only.
async fn ready() -> (S3, S3Store) {
    let server = S3::start().await;
    let store = open(&settings(&server)).await;
    store.check_writes().await.unwrap();
    server.requests().iter().for_each(assert_known_fields);
    server.reset();
    (server, store)
}

fn is_conflict(put: &Result<Version, StoreError>) -> bool {
    put.as_ref().is_err_and(StoreError::is_conflict)
}

/// The codes after the first three are those of
/// <https://developers.cloudflare.com/r2/api/error-codes/>. A denied request is not repeated, and
/// not taken for a server in trouble.
#[tokio::test]
async fn put_is_repeated_or_ends_by_the_code_of_its_answer() {
    let (server, store) = ready().await;
    let version = store
        .put(&shard(), "x".into(), Condition::CreateOnly)
        .await
        .unwrap();
    for (status, code, times, sent, expected) in [
        (409, "ConditionalRequestConflict", 1, 2, "done"),
        (409, "ConditionalRequestConflict", 4, 4, "conflict"),
        (409, "InvalidBucketState", 1, 1, "failed"),
        (503, "SlowDown", 2, 3, "done"),
        (503, "SlowDown", 4, 4, "failed"),
        (500, "InternalError", 1, 2, "done"),
        (503, "ServiceUnavailable", 1, 2, "done"),
        (429, "TooManyRequests", 1, 2, "done"),
        (401, "Unauthorized", 1, 1, "denied"),
        (403, "AccessDenied", 1, 1, "denied"),
        (403, "SignatureDoesNotMatch", 1, 1, "denied"),
        (404, "NoSuchBucket", 1, 1, "failed"),
        (400, "EntityTooLarge", 1, 1, "failed"),
        (400, "IncompleteBody", 1, 1, "failed"),
        (400, "BadDigest", 1, 1, "failed"),
        (400, "InvalidDigest", 1, 1, "failed"),
    ] {
        server.reset();
        (0..times).for_each(|_| server.script(S3Call::Put, S3Fault::Status(status, code)));
        let replace = Condition::Replace(version.clone());
        let put = store.put(&shard(), "x".into(), replace).await;
        let found = match &put {
            Ok(_) => "done",
            Err(StoreError::Conflict(_)) => "conflict",
            Err(StoreError::Denied { .. }) => "denied",
            Err(error) => {
                assert!(format!("{error:?}").contains(code), "{error:?}");
                "failed"
            }
        };
        assert_eq!(
            (found, server.count(S3Call::Put)),
            (expected, sent),
            "{code}: {put:?}"
        );
    }
}

#[tokio::test]
async fn delete_that_fails_is_not_repeated() {
    let (server, store) = ready().await;
    server.script(S3Call::Delete, S3Fault::Status(503, "SlowDown"));
    let deleted = store.delete(&shard()).await;
    assert!(
        matches!(deleted, Err(StoreError::Failed { .. })),
        "{deleted:?}"
    );
    assert_eq!(server.count(S3Call::Delete), 1);
}

#[tokio::test]
async fn request_without_answer_is_repeated_and_times_out() {
    let server = S3::start().await;
    let mut settings = settings(&server);
    settings.attempt_timeout = Duration::from_millis(400);
    settings.total_timeout = Duration::from_secs(3);
    let store = open(&settings).await;
    store.check_writes().await.unwrap();
    let late = || server.script(S3Call::Put, S3Fault::Late(Duration::from_secs(3600)));
    late();
    let put = store
        .put(&current(), "one".into(), Condition::CreateOnly)
        .await;
    put.expect("the first attempt has written, and the second sees it");
    (0..9).for_each(|_| late());
    let put = store.put(&current(), "two".into(), Condition::Always).await;
    assert!(matches!(put, Err(StoreError::Failed { .. })), "{put:?}");
    server.reset();
    (0..9).for_each(|_| server.script(S3Call::Get, S3Fault::Late(Duration::from_secs(3600))));
    let read = store.read_all(&current(), 100).await;
    let text = chain(&read.expect_err("nothing answers the read"));
    assert!(text.contains("did not answer in time"), "{text}");
}

/// The server writes, its answer is lost, and the repeated request meets the bytes of the first.
#[tokio::test]
async fn put_whose_answer_was_lost_succeeds() {
    let (server, store) = ready().await;
    server.script(S3Call::Put, S3Fault::Lost(503, "SlowDown"));
    let created = store
        .put(&current(), "one".into(), Condition::CreateOnly)
        .await;
    server.script(S3Call::Put, S3Fault::Lost(500, "InternalError"));
    let replace = Condition::Replace(created.unwrap());
    let replaced = store.put(&current(), "two".into(), replace).await.unwrap();
    let (found, info) = store.read_all(&current(), 100).await.unwrap();
    assert_eq!((found, info.version), ("two".into(), replaced));
    assert_eq!(server.count(S3Call::Put), 4);
}

/// After a lost answer only equal bytes count as written.
#[tokio::test]
async fn put_after_lost_answer_and_other_write_conflicts() {
    let (server, store) = ready().await;
    let put = store
        .put(&current(), "theirs".into(), Condition::Always)
        .await;
    put.unwrap();
    server.script(S3Call::Put, S3Fault::Status(503, "SlowDown"));
    let put = store
        .put(&current(), "ours!!".into(), Condition::CreateOnly)
        .await;
    assert!(is_conflict(&put), "{put:?}");
    let put = store
        .put(&current(), "theirs".into(), Condition::CreateOnly)
        .await;
    // Nothing got lost, so equal bytes are still another's.
    assert!(is_conflict(&put), "{put:?}");
}

#[tokio::test]
async fn put_sets_type_coding_and_cache_policy() {
    let (server, store) = ready().await;
    store
        .put(&shard(), "x".into(), Condition::CreateOnly)
        .await
        .unwrap();
    store
        .put(&current(), "{}".into(), Condition::CreateOnly)
        .await
        .unwrap();
    for key in [shard(), current()] {
        let object = server.object(&format!("mirror/{key}"));
        let object = object.expect("it lies under the prefix");
        let field = |name: &str| object.headers.get(name).map(String::as_str);
        assert_eq!(field("content-type"), Some(key.content_type()));
        assert_eq!(field("content-encoding"), key.encoding().content_encoding());
        assert_eq!(
            field("cache-control"),
            Some(key.cache_policy().cache_control())
        );
    }
}

/// Checks the size, the one checksum and the signed hash of a put. Several servers refuse the
/// encoding `aws-chunked` and trailers.
fn assert_plain_put(put: &S3Request, bytes: &[u8]) {
    let sha256 = Sha256::of(bytes);
    let checksum = base64::engine::general_purpose::STANDARD.encode(sha256.as_bytes());
    for (name, expected) in [
        ("content-length", Some(bytes.len().to_string())),
        ("x-amz-checksum-sha256", Some(checksum)),
        ("x-amz-content-sha256", Some(sha256.to_string())),
        ("transfer-encoding", None),
    ] {
        assert_eq!(put.header(name), expected.as_deref(), "{name}");
    }
    let signed = put.header("authorization").unwrap();
    let fields = "x-amz-checksum-sha256;x-amz-content-sha256";
    assert!(signed.contains(fields), "{signed}");
    assert_known_fields(put);
}

/// Checks that R2 knows all fields of a request. It has no answer `100 Continue`
/// (<https://developers.cloudflare.com/r2/api/s3/extensions/#auto-creating-buckets-on-upload>), and
/// its list of fields has no trailers, tags, access lists and keys of KMS
/// (<https://developers.cloudflare.com/r2/api/s3/api/>).
fn assert_known_fields(request: &S3Request) {
    let known = [
        "x-amz-checksum-mode",
        "x-amz-checksum-sha256",
        "x-amz-content-sha256",
        "x-amz-date",
        "x-amz-user-agent",
    ];
    let fields = request.headers.keys().map(String::as_str);
    let unknown = fields
        .filter(|name| *name == "expect" || name.starts_with("x-amz-") && !known.contains(name));
    assert_eq!(unknown.collect::<Vec<_>>(), [""; 0], "{request:?}");
}

async fn staged(store: &S3Store, bytes: &Bytes) -> Box<dyn Staged> {
    let mut staged = store.stage().await.unwrap();
    for piece in bytes.chunks(600_000) {
        staged.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    staged
}

#[tokio::test]
async fn put_has_one_checksum_and_signs_it() {
    let (server, store) = ready().await;
    for key in [shard(), current()] {
        store
            .put(&key, "x".into(), Condition::Always)
            .await
            .unwrap();
    }
    let bytes = pattern(2_500_000);
    for key in [object(&bytes), current()] {
        let staged = staged(&store, &bytes).await;
        staged.commit(&key, Condition::Always).await.unwrap();
        assert!(
            server.object(&format!("mirror/{key}")).unwrap().bytes == bytes,
            "{key}"
        );
    }
    let puts = server.requests();
    assert_eq!(puts.len(), 4, "one request for each, whatever its size");
    for (put, bytes) in puts.iter().zip([b"x", b"x", &bytes[..], &bytes]) {
        assert_plain_put(put, bytes);
    }
}

#[tokio::test]
async fn put_of_other_bytes_under_an_immutable_key_is_refused() {
    let (_server, store) = ready().await;
    let put = store.put(&shard(), "y".into(), Condition::Always).await;
    assert!(matches!(put, Err(StoreError::Failed { .. })), "{put:?}");
    assert!(store.head(&shard()).await.unwrap().is_none());
}

#[tokio::test]
async fn commit_of_large_object_is_repeated_from_its_start() {
    let (server, store) = ready().await;
    let bytes = pattern(2_500_000);
    let key = object(&bytes);
    server.script(S3Call::Put, S3Fault::Status(503, "SlowDown"));
    server.script(S3Call::Put, S3Fault::Lost(503, "SlowDown"));
    let staged = staged(&store, &bytes).await;
    let version = staged.commit(&key, Condition::CreateOnly).await.unwrap();
    let puts: Vec<_> = server.requests();
    let puts = puts.iter().filter(|request| request.call == S3Call::Put);
    assert_eq!(puts.inspect(|put| assert_plain_put(put, &bytes)).count(), 3);
    let info = store.head(&key).await.unwrap().unwrap();
    assert_eq!((info.size, info.version), (2_500_000, version));
    let stored = server.object(&format!("mirror/{key}")).unwrap();
    assert!(stored.bytes == bytes);
    assert_eq!(stored.headers["content-encoding"], "zstd");
}

/// The limit of a large immutable object grows by the time for its bytes, here 4 s. That of a
/// commit does not.
#[tokio::test]
async fn put_of_large_object_has_more_time() {
    let server = S3::start().await;
    let mut settings = settings(&server);
    settings.attempt_timeout = Duration::from_millis(700);
    let store = open(&settings).await;
    let bytes = pattern(2_500_000);
    for (key, attempts) in [(object(&bytes), 1), (current(), 2)] {
        server.reset();
        server.script(S3Call::Put, S3Fault::Late(Duration::from_millis(1_500)));
        let staged = staged(&store, &bytes).await;
        staged.commit(&key, Condition::Always).await.unwrap();
        assert_eq!(server.count(S3Call::Put), attempts, "{key}");
    }
}

/// The limit on stalls ends it long before the limit of an attempt, which is more than a minute for
/// this size.
#[tokio::test]
async fn put_of_large_object_that_stalls_fails() {
    let server = S3::start().await;
    let deaf = Wire::start(vec![Say::Wait(Duration::from_secs(3600))]).await;
    let settings = S3Settings {
        endpoint: Some(format!("http://{}", deaf.host())),
        attempts: 1,
        stall_timeout: Duration::from_secs(1),
        attempt_timeout: Duration::from_secs(30),
        ..settings(&server)
    };
    let store = open(&settings).await;
    let staged = staged(&store, &vec![7; 24 << 20].into()).await;
    let put = staged.commit(&shard(), Condition::Always).await;
    let text = chain(&put.expect_err("nothing reads the body"));
    assert!(text.contains("minimum throughput"), "{text}");
}
