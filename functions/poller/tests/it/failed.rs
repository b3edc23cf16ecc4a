//! Revisions that are not pulled again.

use std::time::UNIX_EPOCH;

use model::{Key, Status};
use serde_json::json;
use store::{Condition, StoreExt};
use testkit::Kind;

use crate::world::{World, first_error, outcomes};

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
    assert!(first_error(&second).contains("is not pulled again"), "{second}");
    assert_eq!(world.registry.count(Kind::Head), 2);
    assert_eq!(world.registry.requests().len(), 2);

    // When it is due again, it is not sent to the queue.
    let key = Key::Status("bad".parse().unwrap());
    let (mut status, _) = world.store.read_document::<Status>(&key).await.unwrap().unwrap();
    status.last_poll = UNIX_EPOCH;
    let written = world.store.write_document(&key, &status, Condition::Always).await;
    written.unwrap();
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
