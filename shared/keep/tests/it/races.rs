//! Every interleaving of one pause in each: whatever happens between, what is published leads to what is there.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use keep::{GcSettings, SettleError, Watch};
use layout::{Intent, Key, Sha256, Snapshot, Sweep};
use store::{
    Condition, StoreExt,
    memory::{Action, Answer, Call, Moment},
};
use tokio::time::{Instant, sleep};

use crate::kit::{DAY, Failed, World, catalog, current, is_served, publish};

/// Who asks the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Collector,
    Publisher,
}

tokio::task_local! {
    static WHO: Who;
}

/// Longer than a publication and a collection take together, shorter than it takes to be given up for dead.
const LONG: Duration = Duration::from_secs(40);
const SHORT: Duration = Duration::from_secs(20);

/// A world in which the shards of `a`'s publication lie there, old and named by nothing.
async fn leftovers() -> World {
    let world = World::new();
    world.publish("gone", &["p1", "p2"]).await;
    world.remove("gone").await;
    world.publish("a", &["p0"]).await;
    world.pass(2 * DAY);
    world
}

/// Pauses the two at their operations with these numbers, and looks at the store after every operation.
/// Tells whether both have so many.
fn pause_at(world: &World, collector: u64, publisher: u64) -> [Arc<AtomicU64>; 2] {
    let counts = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
    let (store, told) = (world.store.clone(), counts.clone());
    let hook = move |_: &Call, moment: Moment| {
        is_served(&store);
        let Ok(who) = WHO.try_with(|who| *who) else {
            return Answer::GoOn;
        };
        if moment == Moment::After {
            return Answer::GoOn;
        }
        let (count, at, pause) = match who {
            Who::Collector => (&told[0], collector, LONG),
            Who::Publisher => (&told[1], publisher, SHORT),
        };
        if count.fetch_add(1, Ordering::Relaxed) == at {
            return Answer::Wait(Box::pin(async move {
                sleep(pause).await;
                Answer::GoOn
            }));
        }
        Answer::GoOn
    };
    world.store.set_hook(hook);
    counts
}

/// Runs both, the publication `delay` after the collection, and returns how many operations each had.
async fn run(collector: u64, publisher: u64, delay: Duration) -> (u64, u64) {
    let world = leftovers().await;
    let counts = pause_at(&world, collector, publisher);
    let settings = GcSettings::default();
    let collecting = WHO.scope(Who::Collector, world.gc(&settings));
    let publishing = WHO.scope(Who::Publisher, async {
        sleep(delay).await;
        publish(&world.store, &catalog("a"), &["p1", "p2", "p3"], world.now()).await
    });
    let (_, published) = tokio::join!(collecting, publishing);
    world.store.clear_hook();
    let (now, _) = current(&world.store, &catalog("a")).await.unwrap();
    assert_eq!(now.content_hash, published);
    world.is_sound().await;
    let [collector, publisher] = counts.map(|count| count.load(Ordering::Relaxed));
    (collector, publisher)
}

#[tokio::test(start_paused = true)]
async fn a_publication_that_adopts_and_a_sweep_never_meet() {
    let (collects, publishes) = run(u64::MAX, u64::MAX, Duration::ZERO).await;
    assert!(collects > 10 && publishes > 10, "{collects} {publishes}");
    for collector in 0..collects + 2 {
        for publisher in 0..publishes + 2 {
            for delay in [0, 1, 30] {
                run(collector, publisher, Duration::from_secs(delay)).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_swept_meanwhile_is_noticed_before_the_commit() {
    let world = leftovers().await;
    let watch = Watch::start(&world.store).await.unwrap();
    let published = world.publish("b", &["p1"]).await;
    let key = Key::Snapshot(catalog("b"), published);
    let snapshot = world.read::<Snapshot>(&key).await;
    world.remove("b").await;
    world.gc(&GcSettings::default()).await;
    let settled = watch.settle(&world.store, &catalog("b"), &snapshot).await;
    assert!(matches!(settled, Err(SettleError::Swept(_))), "{settled:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_sweep_a_publication_looks_at_nothing_again() {
    let world = leftovers().await;
    world.gc(&GcSettings::default()).await;
    world.store.take_log();
    world.publish("a", &["p1"]).await;
    assert_eq!(world.store.count(|action| *action == Action::Head), 0);
}

#[tokio::test(start_paused = true)]
async fn an_intent_protects_what_is_about_to_be_published() {
    let world = leftovers().await;
    let old = world.publish("a", &["p1"]).await;
    world.publish("a", &["p2"]).await;
    world.pass(100 * DAY);
    let key = Key::Snapshot(catalog("a"), old);
    let snapshot = world.read::<Snapshot>(&key).await;
    let watch = Watch::start(&world.store).await.unwrap();
    let announced = watch.settle(&world.store, &catalog("a"), &snapshot).await.unwrap();
    world.gc(&GcSettings::default()).await;
    assert!(world.keys().contains(&key));
    announced.withdraw(&world.store).await;
    world.gc(&GcSettings::default()).await;
    assert!(!world.keys().contains(&key));
    assert!(matches!(world.rollback("a", old).await, Err(Failed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_died_is_waited_for_and_then_taken_over() {
    let world = leftovers().await;
    let dead = Sweep {
        serial: 7,
        active: true,
    };
    world
        .store
        .write_document(&Key::Sweep, &dead, Condition::Always)
        .await
        .unwrap();
    let started = Instant::now();
    world.publish("a", &["p1"]).await;
    assert_eq!(started.elapsed().as_secs(), 300);
    world.pass(2 * DAY);
    world.gc(&GcSettings::default()).await;
    assert!(started.elapsed().as_secs() < 605);
    let started = Instant::now();
    world.publish("a", &["p2"]).await;
    assert_eq!(started.elapsed().as_secs(), 0);
}

/// What `a` published long ago, with an Intent that stayed behind then.
async fn forgotten() -> (World, Sha256) {
    let world = World::new();
    let old = world.publish("a", &["p1"]).await;
    let intent = Key::Intent(catalog("a"), old);
    let document = Intent {
        content_hash: old,
        for_readers: false,
    };
    let written = world.store.write_document(&intent, &document, Condition::Always);
    written.await.unwrap();
    world.publish("a", &["p2"]).await;
    world.pass(100 * DAY);
    (world, old)
}

fn generous() -> GcSettings {
    GcSettings {
        max_age: Duration::from_secs(200 * DAY),
        ..GcSettings::default()
    }
}

/// The first sweep takes the Intent, which was old when it looked; the second one, which keeps less, has to find it again.
#[tokio::test(start_paused = true)]
async fn a_publication_that_waits_for_one_sweep_is_seen_by_the_next() {
    let (mut published, mut collector, mut publisher) = (0, 0, 0);
    let mut last = [u64::MAX; 2];
    // As long as the pause is in the first sweep.
    while collector <= last[0] / 2 {
        let (world, old) = forgotten().await;
        let counts = pause_at(&world, collector, publisher);
        let (kept, forgotten) = (generous(), GcSettings::default());
        let collecting = WHO.scope(Who::Collector, async {
            world.gc(&kept).await;
            sleep(SHORT / 2).await;
            world.gc(&forgotten).await;
        });
        let publishing = WHO.scope(Who::Publisher, async {
            sleep(Duration::from_secs(1)).await;
            world.rollback("a", old).await
        });
        let (_, done) = tokio::join!(collecting, publishing);
        world.store.clear_hook();
        published += usize::from(done.is_ok());
        world.is_sound().await;
        last = counts.map(|count| count.load(Ordering::Relaxed));
        (collector, publisher) = match publisher < last[1] {
            true => (collector, publisher + 1),
            false => (collector + 1, 0),
        };
    }
    assert!(published > 50, "{published}");
}
