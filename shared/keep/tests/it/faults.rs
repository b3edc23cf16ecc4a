//! A collection that fails anywhere loses nothing that is named, and the next one finishes the job.

use keep::GcSettings;
use layout::Key;
use store::memory::{Answer, Call, Moment};

use crate::kit::{DAY, World, is_served};

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

/// Without the count of sweeps, which tells how often it was tried.
fn objects(world: &World) -> Vec<(Key, Vec<u8>)> {
    let objects = world.store.objects().into_iter();
    let kept = objects.filter(|(key, _)| *key != Key::Sweep);
    kept.map(|(key, bytes)| (key, bytes.to_vec())).collect()
}

/// Snapshots go first: none that is left names what is gone.
fn no_snapshot_is_broken(world: &World) {
    use layout::{Document as _, Snapshot};
    let objects = world.store.objects();
    for (key, bytes) in &objects {
        let Key::Snapshot(name, _) = key else { continue };
        for named in Snapshot::from_bytes(bytes).unwrap().objects(name) {
            assert!(objects.contains_key(&named.key), "{key} names {}", named.key);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_it_fails_the_next_one_finishes() {
    let expected = {
        let world = world().await;
        world.gc(&GcSettings::default()).await;
        objects(&world)
    };
    for moment in [Moment::Before, Moment::After] {
        for failing in 0.. {
            let world = world().await;
            world.store.take_log();
            let (store, base) = (world.store.clone(), std::sync::OnceLock::new());
            world.store.set_hook(move |call: &Call, at: Moment| {
                is_served(&store);
                let number = call.number - base.get_or_init(|| call.number);
                if number == failing && at == moment {
                    return Answer::Fail;
                }
                Answer::GoOn
            });
            // An operation may find nothing: then it has no second moment, and nothing fails.
            let _ = world.try_gc(&GcSettings::default()).await;
            world.store.clear_hook();
            let operations = world.store.take_log().len() as u64;
            no_snapshot_is_broken(&world);
            world.is_sound().await;
            world.gc(&GcSettings::default()).await;
            assert_eq!(objects(&world), expected, "{moment:?} {failing}");
            world.is_sound().await;
            if operations <= failing {
                assert!(failing > 20, "so many operations there are at least");
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_killed_anywhere_loses_nothing() {
    for killed in 0.. {
        let world = world().await;
        let (store, base) = (world.store.clone(), std::sync::OnceLock::new());
        world.store.set_hook(move |call: &Call, _| {
            is_served(&store);
            let number = call.number - base.get_or_init(|| call.number);
            if number == killed {
                return Answer::Wait(Box::pin(std::future::pending()));
            }
            Answer::GoOn
        });
        let limit = std::time::Duration::from_secs(30);
        let settings = GcSettings::default();
        let ended = tokio::time::timeout(limit, world.try_gc(&settings)).await;
        world.store.clear_hook();
        no_snapshot_is_broken(&world);
        world.publish("a", &["p1", "p5", "p6"]).await;
        world.is_sound().await;
        world.gc(&settings).await;
        world.is_sound().await;
        if ended.is_ok() {
            break;
        }
    }
}
