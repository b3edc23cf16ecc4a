//! Answers to events of an SQS queue.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{MINUTE, World, recorded};

fn failures(answer: &Value) -> Vec<&str> {
    let failures = answer["batchItemFailures"].as_array().unwrap().iter();
    failures
        .map(|failure| failure["itemIdentifier"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_with_a_failing_catalog_fails_only_its_message() {
    let world = World::start(&["good", "bad"], &[]).await;
    world.push("good", 1);
    let answer = world.handle(recorded("queue")).await.unwrap();
    let expected = [
        "2e1424d4-f796-459a-8184-9c92662be6da",
        "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    ];
    assert_eq!(failures(&answer), expected);
    assert_eq!(world.current("good").await.unwrap().serial, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn message_of_a_refused_publication_is_not_delivered_again() {
    let world = World::start(&["good"], &[]).await;
    world.push("good", 1);
    world.handle(json!({})).await.unwrap();
    world.push_text("good", "schema: other\n");
    let answer = world.handle(recorded("queue")).await.unwrap();
    assert_eq!(failures(&answer).len(), 1, "only the malformed message fails: {answer}");
    assert_eq!(world.status("good").await.outcome.as_str(), "refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn message_without_time_left_is_delivered_again() {
    let world = World::start(&["good", "bad"], &[]).await;
    world.push("good", 1);
    let answer = world
        .handle_within(recorded("queue"), Duration::from_secs(1))
        .await
        .unwrap();
    assert_eq!(failures(&answer).len(), 3, "{answer}");
    assert!(world.current("good").await.is_none());
    assert_eq!(
        failures(&world.handle_within(recorded("queue"), MINUTE).await.unwrap()).len(),
        2
    );
}
