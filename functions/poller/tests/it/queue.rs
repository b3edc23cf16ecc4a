//! Answers to events of an SQS queue.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{World, recorded};

fn failures(answer: &Value) -> Vec<&str> {
    answer["batchItemFailures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failure| failure["itemIdentifier"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_with_a_failing_catalog_fails_only_its_message() {
    let world = World::start(&["good", "bad"], &[]).await;
    world.push("good", 1);
    let answer = world.handle(recorded("queue")).await.unwrap();
    let expected = "2e1424d4-f796-459a-8184-9c92662be6da 7c9e6679-7425-40de-944b-e07fc1f90ae7";
    assert_eq!(failures(&answer).join(" "), expected);
    assert_eq!(world.current("good").await.unwrap().serial, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn message_of_a_refused_publication_is_not_delivered_again() {
    let world = World::published(&["good"]).await;
    world.push_text("good", "schema: other\n");
    let answer = world.handle(recorded("queue")).await.unwrap();
    assert_eq!(
        failures(&answer).len(),
        1,
        "only the malformed message fails: {answer}"
    );
    assert_eq!(world.status("good").await.outcome.as_str(), "refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn message_without_time_left_is_delivered_again() {
    let world = World::start(&["good", "bad"], &[]).await;
    world.push("good", 1);
    let second = Duration::from_secs(1);
    let answer = world
        .handle_within(recorded("queue"), second)
        .await
        .unwrap();
    assert_eq!(failures(&answer).len(), 3, "{answer}");
    assert!(world.current("good").await.is_none());
    let answer = world.handle(recorded("queue")).await.unwrap();
    assert_eq!(failures(&answer).len(), 2, "{answer}");
}

/// Adds the composition `team` of the catalog `base` to the configuration, and pushes that catalog.
fn add_composition(world: &World) {
    let team = "- {name: team, validate: warn, compose: {inputs: [{catalog: base}]}}\n";
    world.reconfigure(|text| format!("{text}{team}"));
    world.push("base", 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn publication_queues_the_compositions_of_the_catalog() {
    let world = World::start(&["base"], &[("QUEUE_URL", "https://sqs.example/q.fifo")]).await;
    add_composition(&world);
    let message = |catalog: &str| {
        let body = json!({"catalog": catalog, "digest": "d"}).to_string();
        json!({"Records": [{"messageId": catalog, "body": body, "eventSource": "aws:sqs"}]})
    };
    world.handle(message("base")).await.unwrap();
    let sent: Vec<_> = world
        .outside
        .sent
        .lock()
        .unwrap()
        .drain(..)
        .flatten()
        .collect();
    let hash = world.current("base").await.unwrap().content_hash;
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0].catalog.as_str(), "team");
    assert_eq!(sent[0].digest, format!("base@{hash}"));

    // Nothing is made of the composition, and then the catalog is unchanged.
    for catalog in ["team", "base"] {
        world.handle(message(catalog)).await.unwrap();
        assert_eq!(world.current(catalog).await.unwrap().content_hash, hash);
        assert_eq!(world.outside.sent.lock().unwrap().len(), 0, "{catalog}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn round_without_a_queue_polls_compositions_after_their_inputs() {
    let world = World::start(&["base"], &[]).await;
    add_composition(&world);
    let answer = world.handle(recorded("schedule")).await.unwrap();
    assert_eq!(answer["counts"], json!({"published": 2}), "{answer}");
    world.push("base", 2);
    // The composition is not due, but its input is forced to be.
    world.reconfigure(|text| {
        let slower = text.replace("name: team", "name: team, interval: 1h");
        format!("interval: 1s\n{slower}")
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let answer = world.handle(recorded("schedule")).await.unwrap();
    assert_eq!(answer["counts"], json!({"published": 2}), "{answer}");
    assert_eq!(answer["notDue"], json!([]), "{answer}");
}
