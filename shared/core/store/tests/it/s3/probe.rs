//! Probe of an endpoint for conditional writes.

use std::time::Duration;

use store::{Condition, Store as _, StoreError, StoreExt as _};
use storekit::conformance::current;
use testkit::{S3, S3Call, S3Fault};

use super::support::{open, settings, shard};

const PROBE: &str = "mirror/.conditional-writes";

#[tokio::test]
async fn probe_runs_once_and_leaves_one_object() {
    let server = S3::start().await;
    let first = open(&settings(&server)).await;
    first
        .put(&shard(), "x".into(), Condition::CreateOnly)
        .await
        .unwrap();
    // To a fresh bucket three, three races of four, and its own.
    assert_eq!(server.count(S3Call::Put), 16);
    server.reset();
    first
        .put(&current(), "x".into(), Condition::CreateOnly)
        .await
        .unwrap();
    assert_eq!(server.count(S3Call::Put), 1, "none from then on");
    assert!(server.names().contains(&PROBE.to_owned()));

    server.reset();
    let later = open(&settings(&server)).await;
    later.check_writes().await.unwrap();
    later.check_writes().await.unwrap();
    assert_eq!(server.requests().len(), 2, "two in every later process");
}

#[tokio::test]
async fn operations_without_condition_need_no_probe() {
    let server = S3::start().await;
    let store = open(&settings(&server)).await;
    for _ in 0..2 {
        let read = store.read_all(&current(), 100).await;
        assert!(read.is_err_and(|error| error.is_not_found()));
    }
    store
        .put(&current(), "x".into(), Condition::Always)
        .await
        .unwrap();
    store.delete(&current()).await.unwrap();
    let calls: Vec<S3Call> = server
        .requests()
        .iter()
        .map(|request| request.call)
        .collect();
    assert_eq!(
        calls,
        [S3Call::Get, S3Call::Get, S3Call::Put, S3Call::Delete]
    );
}

/// Returns the reason for which the probe refuses a server.
async fn refusal(server: &S3) -> String {
    let refused = open(&settings(server))
        .await
        .check_writes()
        .await
        .unwrap_err();
    std::error::Error::source(&refused)
        .expect("a reason")
        .to_string()
}

#[tokio::test]
async fn put_to_endpoint_that_ignores_conditions_fails() {
    let server = S3::builder().ignoring_conditions().start().await;
    let reason = refusal(&server).await;
    assert!(reason.contains("conditional writes"), "{reason}");
    let store = open(&settings(&server)).await;
    for condition in [
        Condition::CreateOnly,
        Condition::Replace(store::Version("\"x\"".into())),
    ] {
        let put = store.put(&shard(), "x".into(), condition).await;
        assert!(matches!(put, Err(StoreError::Failed { .. })), "{put:?}");
    }
    assert_eq!(server.names(), [PROBE], "nothing was published");
}

/// S3Proxy compares in one step and writes in another. One writer after the other sees nothing of
/// that.
#[tokio::test]
async fn put_to_endpoint_where_several_writers_win_fails() {
    let server = S3::builder().checking_conditions_before().start().await;
    for _ in 0..2 {
        let reason = refusal(&server).await;
        // Also in the next process.
        assert!(reason.contains("more than one succeeds"), "{reason}");
    }
    assert!(server.names().is_empty());
}

#[tokio::test]
async fn endpoint_with_a_part_of_the_conditions_is_refused() {
    let late = || S3Fault::Late(Duration::ZERO);
    let refuse = || S3Fault::Status(412, "PreconditionFailed");
    let none = || S3Fault::Status(501, "NotImplemented");
    let rows = [
        // Ceph 16 compares the ETag in quotes with one without, so every later publication would
        // lose its race.
        (
            S3::builder(),
            vec![
                late(),
                late(),
                late(),
                refuse(),
                refuse(),
                refuse(),
                refuse(),
            ],
            "refuses the version",
        ),
        // Some endpoints honour `If-None-Match` and not `If-Match`. That is worse: only the pointer
        // is not safe.
        (
            S3::builder().ignoring_conditions(),
            vec![refuse()],
            "it ignores them",
        ),
        (
            S3::builder(),
            vec![none(), none(), none()],
            "does not implement them",
        ),
    ];
    for (server, answers, says) in rows {
        let server = server.start().await;
        for answer in answers {
            server.script(S3Call::Put, answer);
        }
        let reason = refusal(&server).await;
        assert!(reason.contains(says), "{reason}");
    }
}

#[tokio::test]
async fn probe_that_failed_runs_again() {
    let server = S3::start().await;
    server.script(S3Call::Put, S3Fault::Status(403, "AccessDenied"));
    let store = open(&settings(&server)).await;
    assert!(store.check_writes().await.is_err());
    store.check_writes().await.unwrap();
}
