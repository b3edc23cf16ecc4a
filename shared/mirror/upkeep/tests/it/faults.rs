//! A collection that fails or is killed at any operation deletes no named object, and later runs
//! finish the round.

use std::{sync::OnceLock, time::Duration};

use publish::PublishError;
use storekit::Moment::{self, After, Before};
use storekit::{Answer, Call};
use tokio::time::timeout;

use super::kit::{DAY, HOUR, World};

async fn world() -> World {
    let world = World::new();
    for packages in [&["p1", "p2"][..], &["p2", "p3"], &["p3", "p4"]] {
        world.publish("a", packages).await;
    }
    world.publish("gone", &["p4", "p5"]).await;
    world.remove("gone").await;
    world.pass(40 * DAY);
    world
}

/// Takes three steps of garbage collection. Errors and time-outs are ignored.
async fn steps(world: &World) {
    for _ in 0..3 {
        drop(timeout(Duration::from_secs(30), world.try_gc(|_| {})).await);
        world.pass(2 * HOUR);
    }
}

async fn assert_finishes(world: &World, at: u64) {
    world.store.clear_hook();
    world.is_sound().await;
    // Right after the deletes, a publication of deleted objects waits for the end of the round.
    while let Err(error) = world.try_publish("b", &["p1", "p5", "p6"]).await {
        assert!(
            matches!(error, PublishError::Deferred(_)),
            "operation {at}: {error}"
        );
        world.gc_round().await;
    }
    for _ in 0..3 {
        world.gc_round().await;
    }
    world.is_sound().await;
    // Both catalogs, and at most the lists of the last round.
    let expected = ["a", "b"].len() * 4 + ["p3", "p4", "p1", "p5", "p6"].len();
    let left = world
        .store
        .objects()
        .keys()
        .filter(|key| key.is_immutable())
        .count();
    let is_clean = (expected..=expected + 2).contains(&left);
    assert!(is_clean, "operation {at}: {left} of {expected}");
}

/// Fails and kills: a task that waits for ever is a process that was killed there.
#[tokio::test(start_paused = true)]
async fn gc_that_ends_at_any_operation_is_finished_by_later_runs_and_stops_no_publication() {
    let calm = world().await;
    calm.store.take_log();
    steps(&calm).await;
    let operations = calm.store.log().len() as u64;
    assert!(operations > 20, "{operations} operations");
    let fail: fn() -> Answer = || Answer::Fail;
    let kill: fn() -> Answer = || Answer::Wait(Box::pin(std::future::pending()));
    for (moment, answer) in [(Before, fail), (After, fail), (Before, kill), (After, kill)] {
        for ending in 0..operations {
            let world = world().await;
            let base = OnceLock::new();
            world.store.set_hook(move |call: &Call, at: Moment| {
                let number = call.number - base.get_or_init(|| call.number);
                let is_end = number == ending && at == moment;
                if is_end { answer() } else { Answer::GoOn }
            });
            steps(&world).await;
            assert_finishes(&world, ending).await;
        }
    }
}
