//! What a write makes of the server's answers.

use std::time::Duration;

use bytes::Bytes;
use store::{Condition, Store as _, StoreError, StoreExt as _, Version};
use testkit::{S3, S3Call, S3Fault};

use crate::support::{current, open, settings, shard};

const RACED: S3Fault = S3Fault::Status(409, "ConditionalRequestConflict");

/// A store that knows already that conditions are honoured, so that only what a test does is on record.
async fn ready(server: &S3) -> store_s3::S3Store {
    let store = open(server, &settings(server)).await;
    store.check_writes().await.unwrap();
    server.reset();
    store
}

fn is_conflict(put: &Result<Version, StoreError>) -> bool {
    put.as_ref().is_err_and(StoreError::is_conflict)
}

#[tokio::test]
async fn a_race_is_run_again_and_may_be_won() {
    let server = S3::start().await;
    let store = ready(&server).await;
    server.script(S3Call::Put, RACED);
    let put = store.put(&shard(), "x".into(), Condition::CreateOnly).await;
    put.unwrap();
    assert_eq!(server.count(S3Call::Put), 2);
}

#[tokio::test]
async fn races_without_end_are_a_conflict() {
    let server = S3::start().await;
    let store = ready(&server).await;
    (0..10).for_each(|_| server.script(S3Call::Put, RACED));
    let put = store.put(&shard(), "x".into(), Condition::CreateOnly).await;
    assert!(is_conflict(&put), "{put:?}");
    assert_eq!(server.count(S3Call::Put), 4);
}

#[tokio::test]
async fn another_409_is_no_race() {
    let server = S3::start().await;
    let store = ready(&server).await;
    server.script(S3Call::Put, S3Fault::Status(409, "InvalidBucketState"));
    let put = store.put(&shard(), "x".into(), Condition::CreateOnly).await;
    assert!(matches!(put, Err(StoreError::Failed { .. })), "{put:?}");
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let server = S3::start().await;
    let store = ready(&server).await;
    for _ in 0..2 {
        server.script(S3Call::Put, S3Fault::Status(503, "SlowDown"));
    }
    store.put(&shard(), "x".into(), Condition::CreateOnly).await.unwrap();
    assert_eq!(server.count(S3Call::Put), 3);
}

#[tokio::test]
async fn attempts_are_bounded() {
    let server = S3::start().await;
    let store = ready(&server).await;
    (0..9).for_each(|_| server.script(S3Call::Put, S3Fault::Status(503, "SlowDown")));
    let put = store.put(&shard(), "x".into(), Condition::Always).await;
    assert!(matches!(put, Err(StoreError::Failed { .. })), "{put:?}");
    assert_eq!(server.count(S3Call::Put), 4);
}

#[tokio::test]
async fn time_is_bounded() {
    let server = S3::start().await;
    let mut settings = settings(&server);
    settings.attempt_timeout = Duration::from_millis(400);
    settings.total_timeout = Duration::from_secs(3);
    let store = open(&server, &settings).await;
    (0..9).for_each(|_| server.script(S3Call::Put, S3Fault::Late(Duration::from_secs(3600))));
    let started = std::time::Instant::now();
    let put = store.put(&shard(), "x".into(), Condition::Always).await;
    assert!(matches!(put, Err(StoreError::Failed { .. })), "{put:?}");
    let (took, tries) = (started.elapsed(), server.count(S3Call::Put));
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(tries > 1, "one attempt that hangs is not all: {tries}");
}

/// The server wrote, its answer got lost, and the repeated request meets what the first one wrote.
#[tokio::test]
async fn a_write_whose_answer_got_lost_succeeds() {
    let server = S3::start().await;
    let store = ready(&server).await;
    server.script(S3Call::Put, S3Fault::Lost(503, "SlowDown"));
    let created = store
        .put(&current(), "one".into(), Condition::CreateOnly)
        .await
        .unwrap();
    server.script(S3Call::Put, S3Fault::Lost(500, "InternalError"));
    let replaced = store
        .put(&current(), "two".into(), Condition::Replace(created))
        .await
        .unwrap();
    let (found, info) = store.read_all(&current(), 100).await.unwrap();
    assert_eq!((found, info.version), ("two".into(), replaced));
    assert_eq!(server.count(S3Call::Put), 4);
}

#[tokio::test]
async fn a_write_that_timed_out_but_happened_succeeds() {
    let server = S3::start().await;
    let mut settings = settings(&server);
    settings.attempt_timeout = Duration::from_millis(500);
    let store = open(&server, &settings).await;
    store.check_writes().await.unwrap();
    server.script(S3Call::Put, S3Fault::Late(Duration::from_secs(3600)));
    store
        .put(&current(), "one".into(), Condition::CreateOnly)
        .await
        .unwrap();
    assert_eq!(store.read_all(&current(), 100).await.unwrap().0, "one");
}

/// After a lost answer only equal bytes count as one's own.
#[tokio::test]
async fn anothers_write_is_never_taken_for_ones_own() {
    let server = S3::start().await;
    let store = ready(&server).await;
    store.put(&shard(), "theirs".into(), Condition::Always).await.unwrap();
    server.script(S3Call::Put, S3Fault::Status(503, "SlowDown"));
    let put = store.put(&shard(), "ours!!".into(), Condition::CreateOnly).await;
    assert!(is_conflict(&put), "{put:?}");
    let put = store.put(&shard(), "theirs".into(), Condition::CreateOnly).await;
    assert!(
        is_conflict(&put),
        "nothing got lost, so equal bytes are still another's: {put:?}"
    );
}

#[tokio::test]
async fn a_missing_bucket_is_a_failure_and_not_a_conflict() {
    let server = S3::start().await;
    let store = ready(&server).await;
    server.script(S3Call::Put, S3Fault::Status(404, "NoSuchBucket"));
    let replace = Condition::Replace(Version("\"x\"".into()));
    let put = store.put(&current(), "x".into(), replace).await;
    assert!(matches!(put, Err(StoreError::Failed { .. })), "{put:?}");
}

#[tokio::test]
async fn an_object_carries_what_its_key_says() {
    let server = S3::start().await;
    let store = ready(&server).await;
    store.put(&shard(), "x".into(), Condition::CreateOnly).await.unwrap();
    store.put(&current(), "{}".into(), Condition::CreateOnly).await.unwrap();
    for key in [shard(), current()] {
        let object = server
            .object(&format!("mirror/{key}"))
            .expect("it lies under the prefix");
        let field = |name: &str| object.headers.get(name).map(String::as_str);
        assert_eq!(field("content-type"), Some(key.content_type()));
        assert_eq!(field("content-encoding"), key.content_encoding());
        assert_eq!(field("cache-control"), Some(key.cache_policy().cache_control()));
    }
    let requests = server.requests();
    assert_eq!(requests[0].path, format!("/bucket/mirror/{}", shard()));
    assert_eq!(requests[0].header("if-none-match"), Some("*"));
    assert!(
        requests
            .iter()
            .all(|request| request.header("x-amz-checksum-crc32").is_some())
    );
    assert!(requests.iter().all(|request| request.header("authorization").is_some()));
}

/// Parts of eight MiB, the last one smaller; slow to hash without optimisation, hence only one object.
#[tokio::test]
async fn a_large_object_goes_in_parts_and_keeps_its_condition() {
    let server = S3::start().await;
    let store = ready(&server).await;
    let piece = Bytes::from(vec![7; 1 << 20]);
    let mut staged = store.stage().await.unwrap();
    for _ in 0..17 {
        staged.write(piece.clone()).await.unwrap();
    }
    server.script(S3Call::Part, S3Fault::Status(503, "SlowDown"));
    server.script(S3Call::Complete, S3Fault::Lost(503, "SlowDown"));
    let version = staged.commit(&shard(), Condition::CreateOnly).await.unwrap();
    assert_eq!(server.count(S3Call::Part), 4, "three parts, one of them twice");
    let info = store.head(&shard()).await.unwrap();
    assert_eq!((info.size, info.version), (17 << 20, version));
    let object = server.object(&format!("mirror/{}", shard())).unwrap();
    assert_eq!(object.headers["content-encoding"], "zstd");
    let complete = server
        .requests()
        .into_iter()
        .find(|request| request.call == S3Call::Complete);
    assert_eq!(complete.unwrap().header("if-none-match"), Some("*"));
    assert_eq!(server.open_uploads(), 0);
}

#[tokio::test]
async fn what_fails_or_is_dropped_leaves_no_parts() {
    let server = S3::start().await;
    let store = ready(&server).await;
    let large = || async {
        let mut staged = store.stage().await.unwrap();
        staged.write(vec![0; (16 << 20) + 1].into()).await.unwrap();
        staged
    };
    server.script(S3Call::Part, S3Fault::Status(400, "BadDigest"));
    let failed = large().await.commit(&shard(), Condition::CreateOnly).await;
    assert!(matches!(failed, Err(StoreError::Failed { .. })), "{failed:?}");
    assert_eq!(server.open_uploads(), 0);

    server.script(S3Call::Part, S3Fault::Late(Duration::from_secs(3600)));
    let key = shard();
    let commit = large().await.commit(&key, Condition::CreateOnly);
    let begun = async {
        while server.count(S3Call::Part) < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        done = commit => panic!("a part is still being answered: {done:?}"),
        () = begun => {}
    }
    while server.open_uploads() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(store.head(&shard()).await.is_err_and(|error| error.is_not_found()));
}

/// Who may not do something may not the next time either: neither asked again nor taken for a server in trouble.
#[tokio::test]
async fn what_is_denied_is_told_apart_from_what_fails() {
    let server = S3::start().await;
    let store = ready(&server).await;
    server.script(S3Call::Put, S3Fault::Status(403, "AccessDenied"));
    let put = store.put(&shard(), "x".into(), Condition::Always).await;
    assert!(put.is_err_and(|error| error.is_denied()));
    assert_eq!(server.count(S3Call::Put), 1);
}
