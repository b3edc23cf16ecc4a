//! Whether the endpoint honours conditional writes.

use store::{Condition, Store as _, StoreError};
use testkit::{S3, S3Call, S3Fault};

use crate::support::{current, open, settings, shard};

const PROBE: &str = "mirror/.conditional-writes";

#[tokio::test]
async fn it_is_asked_once_and_leaves_one_object() {
    let server = S3::start().await;
    let first = open(&server, &settings(&server)).await;
    first.put(&shard(), "x".into(), Condition::CreateOnly).await.unwrap();
    assert_eq!(server.count(S3Call::Put), 4, "three to a fresh bucket");
    server.reset();
    first.put(&current(), "x".into(), Condition::CreateOnly).await.unwrap();
    assert_eq!(server.count(S3Call::Put), 1, "none from then on");
    assert!(server.names().contains(&PROBE.to_owned()));

    server.reset();
    let later = open(&server, &settings(&server)).await;
    later.check_writes().await.unwrap();
    later.check_writes().await.unwrap();
    assert_eq!(server.requests().len(), 2, "two in every later process");
}

#[tokio::test]
async fn writes_without_conditions_need_none() {
    let server = S3::start().await;
    let store = open(&server, &settings(&server)).await;
    store.put(&current(), "x".into(), Condition::Always).await.unwrap();
    store.delete(&current()).await.unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn an_endpoint_that_overwrites_is_refused() {
    let server = S3::builder().ignoring_conditions().start().await;
    let store = open(&server, &settings(&server)).await;
    let refused = store.check_writes().await.unwrap_err();
    let reason = std::error::Error::source(&refused).expect("a reason").to_string();
    assert!(reason.contains("--single-writer"), "{reason}");
    for condition in [
        Condition::CreateOnly,
        Condition::Replace(store::Version("\"x\"".into())),
    ] {
        let put = store.put(&shard(), "x".into(), condition).await;
        assert!(matches!(put, Err(StoreError::Failed { .. })), "{put:?}");
    }
    assert_eq!(server.names(), [PROBE], "nothing was published");
}

/// Some honour `If-None-Match` and not `If-Match`, which is worse: only the pointer is not safe.
#[tokio::test]
async fn half_of_the_conditions_is_not_enough() {
    let server = S3::builder().ignoring_conditions().start().await;
    let refuse = || S3Fault::Status(412, "PreconditionFailed");
    server.script(S3Call::Put, refuse());
    let store = open(&server, &settings(&server)).await;
    assert!(store.check_writes().await.is_err());
    assert_eq!(server.count(S3Call::Put), 2);
}

#[tokio::test]
async fn a_server_that_does_not_know_conditions_is_refused() {
    let server = S3::start().await;
    for _ in 0..3 {
        server.script(S3Call::Put, S3Fault::Status(501, "NotImplemented"));
    }
    let store = open(&server, &settings(&server)).await;
    assert!(store.check_writes().await.is_err());
}

#[tokio::test]
async fn a_failure_is_no_answer_and_is_asked_again() {
    let server = S3::start().await;
    server.script(S3Call::Put, S3Fault::Status(403, "AccessDenied"));
    let store = open(&server, &settings(&server)).await;
    assert!(store.check_writes().await.is_err());
    store.check_writes().await.unwrap();
}
