//! A collection that is told to stop ends as if it were done, wherever it is.

use std::sync::atomic::{AtomicU64, Ordering};

use keep::{GcReport, GcSettings, gc_until};
use layout::{Key, Sha256, Sweep};
use store::{
    Condition, Store, StoreExt,
    memory::{Action, Answer, Call, Moment},
};
use tokio::time::{Duration, Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::kit::{DAY, World};

/// More than one stretch has, so that there is a second announcement to stop before.
const ORPHANS: usize = 1100;
/// What is removed side by side, which is waited for.
const UNDER_WAY: u64 = 16;

/// A world with this many objects that nothing names, and one earlier publication that is to go.
async fn world(orphans: usize) -> World {
    let world = World::new();
    world.publish("a", &["p1"]).await;
    world.publish("a", &["p2"]).await;
    for orphan in 0..orphans {
        let key = Key::Shard(Sha256::of(&orphan.to_be_bytes()));
        world.store.put(&key, "x".into(), Condition::CreateOnly).await.unwrap();
    }
    world.pass(40 * DAY);
    world
}

/// Collects and is told to stop at the operation with this number, of those that `counts`.
async fn stopped_at(world: &World, number: u64, counts: impl Fn(&Call) -> bool + Send + Sync + 'static) -> GcReport {
    let (stop, seen) = (CancellationToken::new(), AtomicU64::new(0));
    let told = stop.clone();
    world.store.set_hook(move |call: &Call, moment: Moment| {
        if moment == Moment::Before && counts(call) && seen.fetch_add(1, Ordering::Relaxed) == number {
            told.cancel();
        }
        Answer::GoOn
    });
    let report = gc_until(&world.store, &GcSettings::default(), &stop).await.unwrap();
    world.store.clear_hook();
    report
}

/// Nobody has to wait for a sweep.
async fn is_over(world: &World) {
    let found = world.store.read_document::<Sweep>(&Key::Sweep).await.unwrap();
    assert!(found.is_none_or(|(sweep, _)| !sweep.active));
    let begin = Instant::now();
    world.publish("b", &["p1"]).await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn it_says_what_is_left_and_the_next_one_does_it() {
    let whole = world(ORPHANS).await.gc(&GcSettings::default()).await;
    assert!(!whole.stopped && whole.left.objects == 0 && whole.swept.objects > ORPHANS as u64);
    for number in [0, 100, 1050] {
        let world = world(ORPHANS).await;
        let removals = |call: &Call| call.action == Action::Delete;
        let report = stopped_at(&world, number, removals).await;
        assert!(report.stopped);
        assert!(
            (number..=number + UNDER_WAY).contains(&report.swept.objects),
            "only what was under way is waited for: {report:?}"
        );
        assert_eq!(report.swept.objects + report.left.objects, whole.swept.objects);
        assert_eq!(report.swept.bytes + report.left.bytes, whole.swept.bytes);
        let rest = world.gc(&GcSettings::default()).await;
        assert_eq!((rest.swept, rest.stopped), (report.left, false));
        world.is_sound().await;
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_it_is_nobody_waits_for_it_afterwards() {
    // No more removals than one stretch has: they are alike, and there are others that are not.
    let whole = world(20).await;
    whole.store.take_log();
    let done = whole.gc(&GcSettings::default()).await;
    let operations = whole.store.take_log().len();
    assert!(operations > 40, "{operations}");
    for number in 0..operations as u64 {
        let world = world(20).await;
        let report = stopped_at(&world, number, |_| true).await;
        assert!(report.swept.objects <= done.swept.objects);
        is_over(&world).await;
        let rest = world.gc(&GcSettings::default()).await;
        assert!(!rest.stopped);
        // What `b` has published meanwhile may have been left for it by the first one.
        assert!(report.swept.objects + rest.swept.objects <= done.swept.objects);
        assert_eq!(world.gc(&GcSettings::default()).await.swept.objects, 0);
        world.is_sound().await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_does_not_wait_for_another_one() {
    let world = world(1).await;
    let dead = Sweep {
        serial: 7,
        active: true,
    };
    let condition = Condition::Always;
    world.store.write_document(&Key::Sweep, &dead, condition).await.unwrap();
    let before = world.keys();
    let (stop, begin, settings) = (CancellationToken::new(), Instant::now(), GcSettings::default());
    let stopping = async {
        sleep(Duration::from_secs(10)).await;
        stop.cancel();
    };
    let (report, ()) = tokio::join!(gc_until(&world.store, &settings, &stop), stopping);
    assert!(report.unwrap().stopped && begin.elapsed() == Duration::from_secs(10));
    assert_eq!(world.keys(), before);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_told_before_it_begins_does_nothing() {
    let world = world(1).await;
    let stop = CancellationToken::new();
    stop.cancel();
    for dry_run in [true, false] {
        world.store.take_log();
        let settings = GcSettings {
            dry_run,
            ..GcSettings::default()
        };
        let report = gc_until(&world.store, &settings, &stop).await.unwrap();
        assert!(report.stopped && report.dry_run == dry_run && report.left.objects == 0);
        assert_eq!(world.store.take_log(), []);
    }
}
