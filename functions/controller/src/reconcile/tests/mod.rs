//! Reconciliations with an API server and a registry in this process.

mod cluster;

use std::time::Duration;

use model::Key;
use serde_json::{Value, json};
use store::ReadStore as _;
use storekit::conformance::put;
use testkit::{ImageBuilder, Kind, Layer, until};

use self::cluster::Cluster;
use super::{Action, ReconcileError};
use crate::{catalog::FINALIZER, named::HOLD_INTERVAL, tests::condition};

#[tokio::test]
async fn new_catalog_is_marked_published_and_then_left_alone() {
    let cluster = Cluster::start(":v1").await;
    let reference = cluster.push("v1", &["p"]);
    assert_eq!(cluster.reconcile().await.unwrap(), Action::await_change());
    assert_eq!(cluster.writes(), ["a"]);
    assert_eq!(cluster.get("/metadata/finalizers"), json!([FINALIZER]));
    let label = json!({"olm.operatorframework.io/metadata.name": "a"});
    assert_eq!(cluster.get("/metadata/labels"), label);
    assert_eq!(
        cluster.packages().await,
        None,
        "it is published after the finalizer"
    );

    assert_eq!(cluster.reconcile().await.unwrap(), Action::await_change());
    assert_eq!(cluster.writes(), ["status"]);
    assert_eq!(cluster.condition("Serving"), "True Available 1");
    assert_eq!(
        cluster.get("/status/resolvedSource/image/ref"),
        json!(reference)
    );
    assert_eq!(
        cluster.get("/status/urls/base"),
        "https://catalogs.example/catalogs/a"
    );
    assert_eq!(cluster.packages().await, Some(1));

    cluster.registry.reset();
    cluster.reconcile_idly().await;
    assert_eq!(cluster.registry.requests().len(), 0);
}

#[tokio::test]
async fn restart_asks_once_and_keeps_the_status() {
    let mut cluster = Cluster::settled(&["p"]).await;
    cluster.edit(&json!({"status": {"lastUnpacked": "2026-01-01T00:00:00Z"}}));
    let status = cluster.get("/status");
    cluster.registry.reset();
    cluster.restart();
    cluster.reconcile_idly().await;
    assert_eq!(cluster.get("/status"), status, "lastUnpacked too");
    assert_eq!(
        cluster.registry.count(Kind::Blob),
        0,
        "nothing is pulled again"
    );
}

#[tokio::test]
async fn interval_is_only_shortened() {
    let cluster = Cluster::settled(&["p"]).await;
    cluster.change(&json!({"spec": {"source": {"image": {"pollIntervalMinutes": 10}}}}));
    cluster.reconcile().await.unwrap();
    let wait = cluster.wait().as_secs();
    assert!((530..600).contains(&wait), "{wait}");
}

#[tokio::test]
async fn catalog_is_polled_after_a_change_of_what_decides_about_its_content() {
    let cluster = Cluster::settled(&["p"]).await;
    for (change, is_polled) in [
        (json!({"uid": "v"}), true),
        (json!({"generation": 2}), true),
        (
            json!({"annotations": {"catalog-mirror/limits": "{documents: 7}"}}),
            true,
        ),
        (json!({"annotations": {"example.com/a": "b"}}), false),
    ] {
        cluster.registry.reset();
        cluster.edit(&json!({"metadata": change}));
        cluster.reconcile().await.unwrap();
        assert_eq!(
            cluster.registry.count(Kind::Head) > 0,
            is_polled,
            "{change}"
        );
    }
}

#[tokio::test]
async fn conflict_keeps_what_the_other_writer_wrote() {
    let cluster = Cluster::start(":v1").await;
    cluster.push("v1", &["p"]);
    cluster.reconcile().await.unwrap();
    let foreign = [condition("Foreign", "True")];
    let change =
        json!({"status": {"conditions": foreign}, "metadata": {"annotations": {"a": "b"}}});
    let error = cluster.reconcile_before(&change).await.unwrap_err();
    assert!(matches!(error, ReconcileError::Changed), "{error}");
    cluster.reconcile().await.unwrap();
    let kinds = [0, 1, 2].map(|at| cluster.get(&format!("/status/conditions/{at}/type")));
    assert_eq!(kinds, ["Foreign", "Progressing", "Serving"]);
    cluster.reconcile_idly().await;
}

#[tokio::test]
async fn failure_is_written_and_told_once_and_content_stays() {
    let cluster = Cluster::settled(&["p"]).await;
    cluster.writes();
    cluster.name_image("missing");
    let next = cluster.reconcile().await.unwrap();
    assert_ne!(next, Action::await_change(), "it is tried again");
    assert_eq!(cluster.writes(), ["status", "events"]);
    assert_eq!(cluster.condition("Progressing"), "True Retrying 2");
    assert_eq!(cluster.condition("Serving"), "True Available 1");
    assert_eq!(cluster.packages().await, Some(1));
    cluster.registry.reset();
    cluster.reconcile_idly().await;
    assert_eq!(
        cluster.registry.requests().len(),
        0,
        "another status is no reason"
    );
    cluster.pass_time();
    cluster.reconcile_idly().await;
    assert_eq!(cluster.registry.count(Kind::Head), 1);
}

#[tokio::test]
async fn wrong_object_is_blocked_until_it_changes() {
    let cluster = Cluster::start(":v1@sha256:0").await;
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.reconcile().await.unwrap(), Action::await_change());
    assert_eq!(cluster.condition("Progressing"), "False Blocked 1");
    cluster.push("v1", &["p"]);
    cluster.name_image("v1");
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.condition("Progressing"), "True Succeeded 2");
}

#[tokio::test]
async fn pinned_image_without_label_is_blocked_also_after_a_restart() {
    let mut cluster = Cluster::start(":v1").await;
    let image = ImageBuilder::new()
        .layer(Layer::new().file("a", "b"))
        .build();
    cluster.registry.push("cat", "v1", &image);
    cluster.settle().await;
    // The tag may get another image.
    assert_eq!(cluster.condition("Progressing"), "True Retrying 1");
    cluster.registry.reset();
    cluster.reconcile_idly().await;
    assert_eq!(
        cluster.registry.requests().len(),
        0,
        "it has no content to lose"
    );
    let pinned = format!("{}/cat@{}", cluster.registry.host(), image.digest);
    cluster.change(&json!({"spec": {"source": {"image": {"ref": pinned}}}}));
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.condition("Progressing"), "False Blocked 2");
    let message = cluster.get("/status/conditions/0/message");
    cluster.restart();
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.condition("Progressing"), "False Blocked 2");
    assert_eq!(cluster.get("/status/conditions/0/message"), message);
}

#[tokio::test]
async fn unavailable_catalog_loses_content_and_finalizer_and_comes_back() {
    let cluster = Cluster::settled(&["p"]).await;
    cluster.change(&json!({"spec": {"availabilityMode": "Unavailable"}}));
    cluster.settle().await;
    assert_eq!(cluster.packages().await, None);
    assert_eq!(
        cluster.condition("Serving"),
        "False UserSpecifiedUnavailable 2"
    );
    assert_eq!(cluster.get("/metadata/finalizers"), json!([]));
    for field in ["resolvedSource", "urls", "lastUnpacked"] {
        assert_eq!(cluster.get(&format!("/status/{field}")), Value::Null);
    }
    cluster.reconcile_idly().await;
    cluster.change(&json!({"spec": {"availabilityMode": "Available"}}));
    cluster.settle().await;
    assert_eq!(cluster.condition("Serving"), "True Available 3");
    assert_eq!(cluster.packages().await, Some(1));
}

#[tokio::test]
async fn deleted_catalog_keeps_the_finalizers_of_others() {
    let cluster = Cluster::settled(&["p"]).await;
    cluster.change(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["b", FINALIZER]}}));
    cluster.settle().await;
    assert_eq!(cluster.packages().await, None);
    assert_eq!(cluster.condition("Serving"), "False Unavailable 2");
    assert_eq!(cluster.get("/metadata/finalizers"), json!(["b"]));
    cluster.reconcile_idly().await;
}

#[tokio::test]
async fn changed_object_ends_its_poll() {
    let cluster = Cluster::start(":v1").await;
    cluster.push("v1", &["p"]);
    cluster.reconcile().await.unwrap();
    cluster.registry.delay(Kind::Head, Duration::from_secs(60));
    let change = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cluster.change(&json!({"spec": {"availabilityMode": "Unavailable"}}));
    };
    let both = async { tokio::join!(cluster.reconcile(), change) };
    let (next, ()) = tokio::time::timeout(Duration::from_secs(20), both)
        .await
        .unwrap();
    assert_eq!(next.unwrap(), Action::requeue(Duration::ZERO));
}

#[tokio::test]
async fn most_packages_may_go() {
    let cluster = Cluster::settled(&["p", "q", "r"]).await;
    cluster.push("v2", &["p"]);
    cluster.name_image("v2");
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.packages().await, Some(1));
}

#[tokio::test]
async fn lost_content_is_published_again() {
    let cluster = Cluster::settled(&["p"]).await;
    publish::remove(&cluster.store, &"a".parse().unwrap())
        .await
        .unwrap();
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.packages().await, Some(1));
}

#[tokio::test]
async fn pull_secret_is_read_for_each_poll_and_never_written() {
    let mut cluster = Cluster::start(":v1").await;
    cluster.push("v1", &["p"]);
    cluster.set_password(Some("hunter1"));
    cluster.settle().await;
    assert_eq!(cluster.condition("Progressing"), "True Retrying 1");
    let message = cluster.get("/status/conditions/0/message");
    assert!(!message.as_str().unwrap().contains("hunter"), "{message}");
    cluster.set_password(None);
    cluster.restart();
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.condition("Progressing"), "True Retrying 1");
    cluster.set_password(Some("hunter2"));
    cluster.restart();
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.condition("Progressing"), "True Succeeded 1");
}

#[tokio::test]
async fn status_that_was_edited_is_written_again_without_a_poll() {
    let cluster = Cluster::settled(&["p"]).await;
    let status = cluster.get("/status");
    cluster.registry.reset();
    cluster.edit(
        &json!({"status": {"urls": {"base": "https://other.example"}, "lastUnpacked": null}}),
    );
    cluster.reconcile().await.unwrap();
    assert_eq!(cluster.get("/status"), status);
    assert_eq!(cluster.registry.requests().len(), 0);
}

#[tokio::test]
async fn follower_pulls_again_what_a_status_names_after_a_panic() {
    let mut cluster = Cluster::settled(&["p"]).await;
    cluster.writes();
    cluster.follow();
    cluster.store.set_hook(|_, _| panic!("a bug"));
    assert_eq!(cluster.hold().await, Action::requeue(HOLD_INTERVAL));
    cluster.store.clear_hook();
    assert_eq!(cluster.packages().await, None);
    assert_eq!(cluster.hold().await, Action::requeue(HOLD_INTERVAL));
    assert_eq!(cluster.packages().await, Some(1));
    cluster.registry.reset();
    cluster.hold().await;
    assert_eq!(cluster.registry.requests().len(), 0, "the store has it");
    assert_eq!(cluster.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn follower_pulls_what_it_sees_and_removes_catalogs_of_no_object() {
    let mut cluster = Cluster::settled(&["p"]).await;
    cluster.follow();
    let other = Key::Current("other".parse().unwrap());
    put(&cluster.store, &other, "{}").await;
    let is_settled = async || {
        cluster.packages().await.is_some() && cluster.store.head(&other).await.unwrap().is_none()
    };
    let settled = until("the follower holds what is named", is_settled);
    cluster.work_until(settled).await;
}
