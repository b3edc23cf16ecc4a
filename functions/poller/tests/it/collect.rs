//! Garbage collection by a manual or scheduled event.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use model::{Key, Kind, Sha256};
use serde_json::{Value, json};
use store::{Condition, Store};
use storekit::{Action, Answer, Moment};

use crate::world::{World, recorded};

const HOUR: u64 = 3600;
const ORPHANS: u64 = 40;

/// Publishes a catalog, and adds objects that nothing names. The store's clock is ten hours behind.
async fn world() -> World {
    let world = World::start(&["a"], &[]).await;
    world.behind.store(10 * HOUR, Ordering::Relaxed);
    world.push("a", 1);
    world.handle(json!({})).await.unwrap();
    for orphan in 0..ORPHANS {
        let key = Key::Object(Kind::Package, Sha256::of(&orphan.to_be_bytes()));
        let put = world
            .store
            .put(&key, "orphan".into(), Condition::CreateOnly);
        put.await.unwrap();
    }
    world
}

/// Advances the clock of the store by this number of hours.
fn pass(world: &World, hours: u64) {
    world.behind.fetch_sub(hours * HOUR, Ordering::Relaxed);
}

/// Returns the number of objects in a field of a report: `kept`, `condemned`, `deleted` or `left`.
fn objects(report: &Value, field: &str) -> u64 {
    report[field]["objects"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn gc_event_takes_one_step_and_dry_run_none() {
    let world = world().await;
    let before = world.store.objects();
    let preview = world
        .handle(json!({"action": "gc", "dryRun": true}))
        .await
        .unwrap();
    assert_eq!(world.store.objects(), before);
    assert_eq!(preview["dryRun"], true);
    assert_eq!(objects(&preview, "condemned"), ORPHANS);
    let condemned = world.handle(recorded("manual-gc")).await.unwrap();
    assert_eq!(condemned["state"], "condemned");
    assert_eq!(objects(&condemned, "condemned"), ORPHANS);
    pass(&world, 2);
    let deleted = world.handle(recorded("manual-gc")).await.unwrap();
    assert_eq!(deleted["state"], "deleting");
    assert_eq!(objects(&deleted, "deleted"), ORPHANS);
    assert_eq!(objects(&deleted, "left"), 0);
    let check = world.handle(recorded("manual-check")).await.unwrap();
    assert_eq!(check["checks"][0]["findings"], json!([]), "{check}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gc_that_runs_out_of_time_reports_the_rest_and_the_next_run_continues() {
    let world = world().await;
    world.handle(recorded("manual-gc")).await.unwrap();
    pass(&world, 2);
    // The first list is of what is kept. The second one, before the deletes, takes more than half
    // of the four seconds that are left of six.
    let lists = AtomicU64::new(0);
    world
        .store
        .set_hook(move |call, moment| match &call.action {
            Action::List(prefix) if prefix.is_empty() && moment == Moment::Before => {
                if lists.fetch_add(1, Ordering::Relaxed) != 1 {
                    return Answer::GoOn;
                }
                let pause = tokio::time::sleep(Duration::from_millis(2200));
                Answer::Wait(pause.map(|()| Answer::GoOn).boxed())
            }
            _ => Answer::GoOn,
        });
    let time = Duration::from_secs(6);
    let first = world
        .handle_within(recorded("manual-gc"), time)
        .await
        .unwrap();
    assert_eq!(objects(&first, "deleted"), 0, "{first}");
    assert_eq!(objects(&first, "left"), ORPHANS, "{first}");
    world.store.clear_hook();
    let second = world.handle(recorded("manual-gc")).await.unwrap();
    assert_eq!(objects(&second, "deleted"), ORPHANS, "{second}");
    assert_eq!(objects(&second, "left"), 0, "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gc_on_a_store_that_hangs_fails_in_time() {
    let world = world().await;
    world.store.set_hook(|call, _| match call.action {
        Action::List(_) => Answer::Wait(pending().boxed()),
        _ => Answer::GoOn,
    });
    let time = Duration::from_secs(3);
    let error = world
        .handle_within(recorded("manual-gc"), time)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("until the time was over"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn gc_keeps_the_generations_that_the_configuration_asks_for() {
    let world = world().await;
    world.push("a", 2);
    world.handle(json!({})).await.unwrap();
    pass(&world, 2);
    let preview = json!({"action": "gc", "dryRun": true});
    let before = world.handle(preview.clone()).await.unwrap();
    world.reconfigure(|text| format!("retention: {{generations: 0, grace: 1h}}\n{text}"));
    let after = world.handle(preview).await.unwrap();
    assert!(
        objects(&after, "kept") < objects(&before, "kept"),
        "{before} {after}"
    );
}
