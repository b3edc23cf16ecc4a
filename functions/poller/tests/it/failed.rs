//! Revisions that are not pulled again.

use std::time::{Duration, UNIX_EPOCH};

use model::{Key, Status};
use serde_json::{Value, json};
use store::{Condition, StoreExt};
use testkit::Kind;
use tokio::time::sleep;

use crate::world::{MINUTE, World, outcomes};

/// Starts an event, and kills the instance in the middle of the pull, which waits for a blob.
async fn kill(world: &mut World, event: &Value) {
    world.registry.delay(Kind::Blob, MINUTE);
    let before = open_pulls(world).await;
    let recorded = async {
        while open_pulls(world).await == before {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        answer = world.handle(event.clone()) => panic!("the event ended: {answer:?}"),
        () = recorded => {}
    }
    world.registry.delay(Kind::Blob, Duration::ZERO);
    world.restart();
}

async fn open_pulls(world: &World) -> usize {
    let key = Key::Status("bad".parse().unwrap());
    let status = world.store.read_document::<Status>(&key).await.unwrap();
    let open = status.and_then(|(status, _)| status.open_pulls);
    open.map_or(0, |open| open.processes.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn catalog_that_kills_two_instances_is_left_until_it_is_forced() {
    let mut world = World::start(&["bad"], &[]).await;
    world.push("bad", 1);
    let event = json!({"catalogs": ["bad"]});
    for killed in 1..=2 {
        kill(&mut world, &event).await;
        assert_eq!(open_pulls(&world).await, killed);
    }
    world.registry.reset();
    let third = world.handle(event.clone()).await.unwrap();
    assert_eq!(outcomes(&third), [("bad", "failed")]);
    let error = third["reports"][0]["error"].as_str().unwrap();
    assert!(
        error.contains("failed for good") && error.contains("--force"),
        "{error}"
    );
    assert_eq!(world.registry.count(Kind::Head), world.registry.requests().len());
    // The record stays, and a message for it is not delivered again.
    let message = json!({"Records": [{"messageId": "1", "eventSource": "aws:sqs", "body": "{\"catalog\":\"bad\"}"}]});
    let answer = world.handle(message).await.unwrap();
    assert_eq!(answer["batchItemFailures"], json!([]), "{answer}");

    let forced = json!({"action": "poll", "catalogs": ["bad"], "force": true});
    assert_eq!(outcomes(&world.handle(forced).await.unwrap()), [("bad", "published")]);
    assert_eq!(world.status("bad").await.open_pulls, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_revision_of_a_killer_is_pulled() {
    let mut world = World::start(&["bad"], &[]).await;
    world.push("bad", 1);
    for _ in 0..2 {
        kill(&mut world, &json!({})).await;
    }
    world.push("bad", 2);
    let answer = world.handle(json!({})).await.unwrap();
    assert_eq!(outcomes(&answer), [("bad", "published")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_revision_costs_one_head_and_no_message_until_its_status_is_lost() {
    let mut world = World::start(&["good", "bad"], &[("QUEUE_URL", "https://sqs/queue.fifo")]).await;
    world.push("good", 1);
    world.push_text("bad", "schema: [");
    let event = json!({"catalogs": ["good", "bad"]});
    let first = world.handle(event.clone()).await.unwrap();
    assert_eq!(outcomes(&first), [("bad", "failed"), ("good", "published")]);
    world.registry.reset();
    let second = world.handle(event.clone()).await.unwrap();
    assert_eq!(outcomes(&second), [("bad", "failed"), ("good", "unchanged")]);
    assert!(
        second["reports"][0]["error"]
            .as_str()
            .unwrap()
            .contains("is not pulled again"),
        "{second}"
    );
    assert_eq!(world.registry.count(Kind::Head), 2);
    assert_eq!(world.registry.requests().len(), 2);

    // When it is due again, it is not sent to the queue.
    let key = Key::Status("bad".parse().unwrap());
    let (status, _) = world.store.read_document::<Status>(&key).await.unwrap().unwrap();
    let long_ago = Status {
        last_poll: UNIX_EPOCH,
        ..status
    };
    world
        .store
        .write_document(&key, &long_ago, Condition::Always)
        .await
        .unwrap();
    world.configure(&["bad"], "");
    world.restart();
    world.handle(json!({})).await.unwrap_err();
    assert!(world.outside.sent.lock().unwrap().is_empty());
    // Nothing but the saving of work depends on the status.
    world.store.lose(&key);
    world.restart();
    world.handle(json!({})).await.unwrap();
    assert_eq!(world.outside.sent.lock().unwrap().len(), 1);
}
