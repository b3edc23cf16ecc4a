//! Garbage collection.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use layout::{Key, Sha256, Sweep};
use serde_json::{Value, json};
use store::{
    Condition, Store, StoreExt,
    memory::{Action, Answer, Call, Moment},
};

use crate::world::{World, recorded};

const DAY: u64 = 24 * 3600;
const ORPHANS: usize = 40;

/// With a publication of two days ago, and objects from then that nothing names.
async fn world() -> World {
    let world = World::start(&["a"], &[]).await;
    world.behind.store(2 * DAY, Ordering::Relaxed);
    world.push("a", 1);
    world.handle(json!({})).await.unwrap();
    for orphan in 0..ORPHANS {
        let key = Key::Shard(Sha256::of(&orphan.to_be_bytes()));
        world
            .store
            .put(&key, "orphan".into(), Condition::CreateOnly)
            .await
            .unwrap();
    }
    world.behind.store(0, Ordering::Relaxed);
    world
}

fn objects(report: &Value) -> [u64; 4] {
    ["kept", "swept", "waiting", "left"].map(|what| report[what]["objects"].as_u64().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nothing_names_goes_unless_it_is_only_asked() {
    let world = world().await;
    let before = world.store.objects();
    let told = world.handle(json!({"action": "gc", "dryRun": true})).await.unwrap();
    assert_eq!(world.store.objects(), before);
    let done = world.handle(recorded("manual-gc")).await.unwrap();
    assert_eq!((&told["dryRun"], &done["dryRun"]), (&json!(true), &json!(false)));
    assert_eq!(
        (&told["swept"], &done["swept"]),
        (
            &json!({"objects": ORPHANS, "bytes": 6 * ORPHANS}),
            &json!({"objects": ORPHANS, "bytes": 6 * ORPHANS})
        )
    );
    assert_eq!((&done["stopped"], &done["catalogs"]), (&json!(false), &json!(1)));
    let check = world.handle(recorded("manual-check")).await.unwrap();
    assert_eq!(check["checks"][0]["findings"], json!([]), "{check}");
    assert_eq!(objects(&world.handle(recorded("manual-gc")).await.unwrap())[1], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_says_what_is_kept() {
    let world = world().await;
    world.configure_also("retention: {grace: 3days}");
    let report = world.handle(recorded("manual-gc")).await.unwrap();
    assert_eq!(objects(&report)[1..3], [0, ORPHANS as u64], "{report}");
    world.configure(&["a"], "");
    world.configure_also("retention: {grace: 59m}");
    let error = world.handle(json!({})).await.unwrap_err().to_string();
    assert!(error.contains("retention") && error.contains("3600 s"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_in_time_and_goes_on_the_next_time() {
    let world = world().await;
    world.store.set_hook(|call: &Call, moment: Moment| {
        if call.action != Action::Delete || moment == Moment::After {
            return Answer::GoOn;
        }
        Answer::Wait(Box::pin(async {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            Answer::GoOn
        }))
    });
    let begin = Instant::now();
    // Of which two seconds are the margin, and half of the rest is for the end.
    let time = Duration::from_secs(6);
    let first = world.handle_within(recorded("manual-gc"), time).await.unwrap();
    assert!(begin.elapsed() < time, "{:?}", begin.elapsed());
    let [_, swept, _, left] = objects(&first);
    assert_eq!(
        (&first["stopped"], swept + left),
        (&json!(true), ORPHANS as u64),
        "{first}"
    );
    assert!(swept > 0 && left > 0, "{first}");
    let (sweep, _) = world.store.read_document::<Sweep>(&Key::Sweep).await.unwrap().unwrap();
    assert!(!sweep.active, "nobody has to wait");
    world.store.clear_hook();
    let second = world.handle(recorded("manual-gc")).await.unwrap();
    assert_eq!(objects(&second)[1], left, "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_hangs_is_told_in_time() {
    let world = world().await;
    let hangs = |call: &Call, moment: Moment| {
        if call.action == Action::Delete && moment == Moment::Before {
            return Answer::Wait(Box::pin(std::future::pending()));
        }
        Answer::GoOn
    };
    world.store.set_hook(hangs);
    let (begin, time) = (Instant::now(), Duration::from_secs(4));
    let error = world.handle_within(recorded("manual-gc"), time).await.unwrap_err();
    assert!(begin.elapsed() < time, "{:?}", begin.elapsed());
    assert!(error.to_string().contains("publications may wait"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_while_what_is_published_cannot_be_read() {
    let world = world().await;
    let hash = world.current("a").await.unwrap().content_hash;
    let key = Key::Snapshot("a".parse().unwrap(), hash);
    world.store.delete(&key).await.unwrap();
    let error = world.handle(recorded("manual-gc")).await.unwrap_err().to_string();
    assert!(error.contains("repair it first"), "{error}");
    let orphans = world.store.objects().into_values();
    assert_eq!(orphans.filter(|bytes| bytes[..] == b"orphan"[..]).count(), ORPHANS);
}
