//! Schedule events: due catalogs, the queue, time limits and secrets.

use std::time::{Duration, UNIX_EPOCH};

use model::{Document as _, Key, Status};
use serde_json::json;
use store::StoreExt;
use storekit::conformance::put;
use testkit::{Kind, Registry};

use crate::world::{MINUTE, World, first_error, outcomes, recorded};

#[tokio::test(flavor = "multi_thread")]
async fn schedule_publishes_changed_catalogs_and_checks_unchanged_ones() {
    let world = World::start(&["a", "b"], &[]).await;
    world.push("a", 1);
    world.push("b", 1);
    let first = world.handle(recorded("schedule")).await.unwrap();
    assert_eq!(outcomes(&first), [("a", "published"), ("b", "published")]);
    assert_eq!(first["counts"], json!({"published": 2}));

    world.push("b", 2);
    world.registry.reset();
    let second = world.handle(recorded("scheduler")).await.unwrap();
    assert_eq!(outcomes(&second), [("a", "unchanged"), ("b", "published")]);
    // One HEAD for each check, and one more by the pull, which resolves the tag again.
    assert_eq!(world.registry.count(Kind::Head), 3);
    let kept = world.status("a").await.pull_ms;
    assert!(
        kept.is_some(),
        "an unchanged poll keeps the duration of the last pull"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn schedule_sends_no_request_for_a_catalog_that_is_not_due() {
    let world = World::published(&["a"]).await;
    world.reconfigure(|text| format!("interval: 1h\n{text}"));
    world.registry.reset();
    let second = world.handle(json!({})).await.unwrap();
    assert_eq!(second["notDue"], json!(["a"]));
    assert_eq!(world.registry.requests().len(), 0);
    let manual = world.handle(json!({"catalogs": ["a"]})).await.unwrap();
    assert_eq!(outcomes(&manual), [("a", "unchanged")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_configuration_applies_at_once_and_broken_one_fails_with_all_problems() {
    let world = World::published(&["a"]).await;
    world.push("b", 1);
    world.configure(&["a", "b"]);
    assert_eq!(outcomes(&world.handle(json!({})).await.unwrap()).len(), 2);
    let broken = "catalogs: [{name: A, source: quay.io/a/a}, {name: b, source: 'oci:/x'}]";
    world.reconfigure(|_| broken.to_owned());
    for _ in 0..2 {
        let error = world.handle(json!({})).await.unwrap_err().to_string();
        assert!(
            error.contains("catalog A") && error.contains("catalog b"),
            "{error}"
        );
    }
    assert_eq!(world.current("a").await.unwrap().serial, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_failure_is_reported_and_only_failures_are_an_error() {
    let world = World::start(&["a", "bad"], &[]).await;
    world.push("a", 1);
    world.push_text("bad", "schema: [");
    let answer = world.handle(json!({})).await.unwrap();
    assert_eq!(outcomes(&answer), [("a", "published"), ("bad", "failed")]);
    world.configure(&["bad2"]);
    let error = world.handle(json!({})).await.unwrap_err().to_string();
    assert!(
        error.contains("none of 1 catalogs") && error.contains("bad2"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn schedule_with_a_queue_checks_64_catalogs_at_once_and_sends_refused_messages_again() {
    let numbered: Vec<String> = (0..82).map(|at| format!("c{at:02}")).collect();
    let names: Vec<&str> = numbered.iter().map(String::as_str).collect();
    let world = World::start(&names, &[("QUEUE_URL", "https://sqs/queue.fifo")]).await;
    for name in names {
        world.push(name, 1);
    }
    world.registry.delay(Kind::Head, Duration::from_millis(20));
    *world.outside.refuse.lock().unwrap() = Some(3);
    let answer = world.handle(json!({})).await.unwrap();
    assert_eq!(answer["queued"].as_array().unwrap().len(), 82);
    let at_once = world.registry.most_at_once(Kind::Head);
    assert!((16..=64).contains(&at_once), "{at_once}");
    assert_eq!(world.registry.requests().len(), 82, "nothing is pulled");
    let sent = world.outside.sent.lock().unwrap().clone();
    let sizes: Vec<usize> = sent.iter().map(Vec::len).collect();
    assert_eq!(sizes, [10, 1, 10, 10, 10, 10, 10, 10, 10, 2]);
    assert_eq!(sent[0][3], sent[1][0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn catalogs_without_time_are_left_and_go_first_the_next_time() {
    let world = World::start(&["a", "b"], &[("RESOLVES", "1")]).await;
    world.push("a", 1);
    world.push("b", 1);
    world.handle(json!({"catalogs": ["a"]})).await.unwrap();
    world.registry.reset();
    let first = world
        .handle_within(json!({}), Duration::from_secs(1))
        .await
        .unwrap();
    assert_eq!(first["left"].as_array().unwrap().len(), 2);
    assert_eq!(world.registry.requests().len(), 0);
    world.handle(json!({})).await.unwrap();
    let path = &world.registry.requests()[0].path;
    assert!(path.starts_with("/v2/b/"), "b was never tried");
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_that_runs_out_of_time_is_a_failure_with_its_reason() {
    let world = World::start(&["slow"], &[]).await;
    world.push("slow", 1);
    world.registry.delay(Kind::Blob, MINUTE);
    let time = Duration::from_secs(4);
    let answer = world
        .handle_within(json!({"catalogs": ["slow"]}), time)
        .await
        .unwrap();
    assert_eq!(outcomes(&answer), [("slow", "failed")]);
    let status = world.status("slow").await;
    assert!(status.error.unwrap().contains("all the time there was"));
    assert!(status.pull_ms.is_some_and(|took| took >= 1000));
    assert!(world.current("slow").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn rotated_secrets_are_read_after_a_registry_refuses_the_old_ones() {
    let builder = Registry::builder().basic("user", "new");
    let world = World::start_with(builder, &["a"], &[("PULL_SECRETS", "pull")]).await;
    world.push("a", 1);
    let missing = world.handle(json!({})).await.unwrap_err().to_string();
    assert!(missing.contains("there is no secret pull"), "{missing}");
    world.set_password("old");
    let refused = world.handle(json!({"catalogs": ["a"]})).await.unwrap();
    assert!(
        first_error(&refused).contains("from pull were refused"),
        "{refused}"
    );
    world.set_password("new");
    let answer = world.handle(json!({"catalogs": ["a"]})).await.unwrap();
    assert_eq!(outcomes(&answer), [("a", "published")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn public_mirror_refuses_catalogs_that_are_pulled_with_credentials() {
    for (publish, outcome) in [("false", "failed"), ("true", "published")] {
        let builder = Registry::builder().basic("user", "word");
        let variables = [("PULL_SECRETS", "pull"), ("PUBLISH_PRIVATE", publish)];
        let world = World::start_with(builder, &["a"], &variables).await;
        world.push("a", 1);
        world.set_password("word");
        let answer = world.handle(json!({"catalogs": ["a"]})).await.unwrap();
        assert_eq!(outcomes(&answer), [("a", outcome)], "{answer}");
        let reason = "with the credentials of pull, and anyone can read this mirror";
        assert_eq!(
            first_error(&answer).contains(reason),
            publish == "false",
            "{answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn function_of_128_mb_refuses_what_does_not_fit_and_publishes_the_rest() {
    let names = ["first", "large", "last"];
    let mut world = World::start(&names, &[("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")]).await;
    world.push("first", 1);
    world.push("last", 1);
    // Half of the memory is for documents, and a document may take eight times its size.
    let text = |bytes: usize| format!("schema: olm.package\nname: p\nv: {}\n", "x".repeat(bytes));
    world.push_text("large", &text(8 << 20));
    let answer = world.handle(json!({"catalogs": names})).await.unwrap();
    let expected = [
        ("first", "published"),
        ("large", "failed"),
        ("last", "published"),
    ];
    assert_eq!(outcomes(&answer), expected);
    let error = world.status("large").await.error.unwrap();
    assert!(
        error.contains("exceeds the limit memoryBytes of 67108864"),
        "{error}"
    );
    assert!(error.contains("larger limits.memoryBytes"), "{error}");
    world.push_text("large", &text(7 << 20));
    world.restart();
    let answer = world.handle(json!({"catalogs": ["large"]})).await.unwrap();
    assert_eq!(outcomes(&answer), [("large", "published")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_revision_costs_one_head_and_no_message_until_its_status_is_lost() {
    let mut world =
        World::start(&["good", "bad"], &[("QUEUE_URL", "https://sqs/queue.fifo")]).await;
    world.push("good", 1);
    world.push_text("bad", "schema: [");
    let event = json!({"catalogs": ["good", "bad"]});
    let first = world.handle(event.clone()).await.unwrap();
    assert_eq!(outcomes(&first), [("bad", "failed"), ("good", "published")]);
    world.registry.reset();
    let second = world.handle(event.clone()).await.unwrap();
    assert_eq!(
        outcomes(&second),
        [("bad", "failed"), ("good", "unchanged")]
    );
    assert!(
        first_error(&second).contains("is not pulled again"),
        "{second}"
    );
    assert_eq!(world.registry.count(Kind::Head), 2);
    assert_eq!(world.registry.requests().len(), 2);

    // When it is due again, it is not sent to the queue.
    let key = Key::Status("bad".parse().unwrap());
    let (mut status, _) = world
        .store
        .read_document::<Status>(&key)
        .await
        .unwrap()
        .unwrap();
    status.last_poll = UNIX_EPOCH;
    put(&world.store, &key, status.to_bytes()).await;
    world.configure(&["bad"]);
    world.restart();
    world.handle(json!({})).await.unwrap_err();
    assert!(world.outside.sent.lock().unwrap().is_empty());
    // Nothing but the saving of work depends on the status.
    world.store.lose(&key);
    world.restart();
    world.handle(json!({})).await.unwrap();
    assert_eq!(world.outside.sent.lock().unwrap().len(), 1);
}
