//! Manual events: forced polls, rollbacks and checks.

use model::Sha256;
use serde_json::json;
use store::{Condition, Store};

use crate::world::{World, first_error, outcomes, recorded};

#[tokio::test(flavor = "multi_thread")]
async fn forced_poll_publishes_content_that_a_poll_refuses() {
    let world = World::start(&["good"], &[]).await;
    world.push("good", 1);
    world.handle(json!({})).await.unwrap();
    world.push_text("good", "schema: other\n");
    let refused = world.handle(json!({"action": "poll"})).await.unwrap();
    assert_eq!(outcomes(&refused), [("good", "refused")]);
    let forced = world.handle(recorded("manual-force")).await.unwrap();
    assert_eq!(outcomes(&forced), [("good", "published")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_stays_until_source_changes() {
    let world = World::start(&["a"], &[]).await;
    world.push("a", 1);
    world.handle(json!({})).await.unwrap();
    let old = world.current("a").await.unwrap().content_hash.to_string();
    world.push("a", 2);
    world.handle(json!({})).await.unwrap();
    let event = json!({"action": "rollback", "catalogs": ["a"], "contentHash": old});
    let answer = world.handle(event).await.unwrap();
    assert_eq!(answer["reports"][0]["contentHash"], old);
    assert_eq!(answer["reports"][0]["serial"], 3);
    assert_eq!(outcomes(&world.handle(json!({})).await.unwrap()), [("a", "unchanged")]);
    assert_eq!(world.current("a").await.unwrap().content_hash.to_string(), old);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_reports_damaged_object() {
    let world = World::start(&["a"], &[]).await;
    world.push("a", 1);
    world.handle(json!({})).await.unwrap();
    let check = async || world.handle(recorded("manual-check")).await.unwrap()["checks"][0].clone();
    assert_eq!(check().await["findings"], json!([]));
    let key = world.current("a").await.unwrap().all.gzip.key();
    let (bytes, condition) = (b"damaged"[..].into(), Condition::Always);
    world.store.put(&key, bytes, condition).await.unwrap();
    let found = check().await;
    let problem = found["findings"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("damaged"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unconfigured_names_are_all_named_in_the_error() {
    let world = World::start(&["a"], &[]).await;
    let error = world.handle(json!({"catalogs": ["x", "a", "y"]})).await.unwrap_err();
    assert_eq!(error.to_string(), "not configured: x, y");
    let hash = Sha256::of(b"").to_string();
    let event = json!({"action": "rollback", "catalogs": ["x"], "contentHash": hash});
    let answer = world.handle(event).await.unwrap();
    assert!(first_error(&answer).contains("the store has no catalog x"), "{answer}");
}
