//! Manual events: forced polls, rollbacks and checks. Events that are refused.

use poller::PollerEvent;
use serde_json::json;

use crate::world::{World, first_error, outcomes, recorded};

#[tokio::test(flavor = "multi_thread")]
async fn forced_poll_publishes_content_that_a_poll_refuses() {
    let world = World::published(&["good"]).await;
    world.push_text("good", "schema: other\n");
    let refused = world.handle(json!({"action": "poll"})).await.unwrap();
    assert_eq!(outcomes(&refused), [("good", "refused")]);
    let forced = world.handle(recorded("manual-force")).await.unwrap();
    assert_eq!(outcomes(&forced), [("good", "published")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_stays_until_source_changes() {
    let world = World::published(&["a"]).await;
    let old = world.current("a").await.unwrap().content_hash.to_string();
    world.push("a", 2);
    world.handle(json!({})).await.unwrap();
    let event = json!({"action": "rollback", "catalogs": ["a"], "contentHash": old});
    let answer = world.handle(event).await.unwrap();
    assert_eq!(answer["reports"][0]["contentHash"], old);
    assert_eq!(answer["reports"][0]["serial"], 3);
    assert_eq!(
        outcomes(&world.handle(json!({})).await.unwrap()),
        [("a", "unchanged")]
    );
    assert_eq!(
        world.current("a").await.unwrap().content_hash.to_string(),
        old
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_reports_damaged_object() {
    let world = World::published(&["a"]).await;
    let check = async || world.handle(recorded("manual-check")).await.unwrap()["checks"][0].clone();
    assert_eq!(check().await["findings"], json!([]));
    let key = world.current("a").await.unwrap().all.gzip.key();
    world.store.corrupt(&key, "damaged");
    let found = check().await;
    let problem = found["findings"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("damaged"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unconfigured_names_are_all_named_in_the_error() {
    let world = World::start(&["a"], &[]).await;
    let error = world
        .handle(json!({"catalogs": ["x", "a", "y"]}))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "not configured: x, y");
    let answer = world.handle(recorded("manual-rollback")).await.unwrap();
    assert!(
        first_error(&answer).contains("has no catalog good"),
        "{answer}"
    );
}

#[test]
fn unknown_events_are_refused_with_a_list_of_accepted_ones() {
    for event in [
        recorded("unknown-s3"),
        json!([]),
        json!("poll"),
        json!({"catalog": "a"}),
        json!({"source": "aws.s3", "detail-type": "Scheduled Event"}),
        json!({"action": "remove"}),
        json!({"action": "poll", "catalogs": ["../x"]}),
        json!({"action": "poll", "dryRun": true}),
        json!({"action": "poll", "contentHash": "ab"}),
        json!({"action": "rollback", "catalogs": ["a"]}),
        json!({"action": "rollback", "catalogs": ["a", "b"], "contentHash": "ab"}),
        json!({"action": "check", "force": true}),
        json!({"dryRun": true}),
        json!({"action": "gc", "catalogs": ["a"]}),
        json!({"action": "gc", "force": true}),
        json!({"action": "gc", "contentHash": "ab"}),
        json!({"action": "poll", "unverified": true}),
        json!({"action": "gc", "dryRun": "yes"}),
    ] {
        let error = PollerEvent::from_value(event.clone()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("SQS") && text.contains("rollback"),
            "{event}: {text}"
        );
    }
}
