use std::time::Duration;

use catalog_mirror_upkeep::Retention;
use model::{Catalogs, Key, ObjectKey, Sha256};
use proptest::prelude::*;
use publish::PublishError;
use store::{StoreExt, read_stored};

use super::kit::{DAY, HOUR, World};

const CATALOGS: [&str; 3] = ["a", "b", "c"];
const PACKAGES: [&str; 6] = ["p0", "p1", "p2", "p3", "p4", "p5"];

#[derive(Debug, Clone)]
enum Step {
    Publish { catalog: usize, packages: u8 },
    Rollback { catalog: usize, back: usize },
    Remove { catalog: usize },
    Collect { generations: usize, days: u64 },
    Pass { minutes: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let catalog = 0..CATALOGS.len();
    prop_oneof![
        6 => (catalog.clone(), 1_u8..64).prop_map(|(catalog, packages)| Step::Publish { catalog, packages }),
        3 => (catalog.clone(), 0_usize..5).prop_map(|(catalog, back)| Step::Rollback { catalog, back }),
        1 => catalog.prop_map(|catalog| Step::Remove { catalog }),
        6 => (0_usize..4, 0_u64..6).prop_map(|(generations, days)| Step::Collect { generations, days }),
        6 => (1_u64..300).prop_map(|minutes| Step::Pass { minutes }),
    ]
}

impl Step {
    async fn take(&self, world: &World) {
        match *self {
            Self::Publish { catalog, packages } => {
                let chosen = (0..PACKAGES.len()).filter(|at| packages & (1 << at) != 0);
                let chosen: Vec<&str> = chosen.map(|at| PACKAGES[at]).collect();
                match world.try_publish(CATALOGS[catalog], &chosen).await {
                    Ok(_) | Err(PublishError::Deferred(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            // A state that is not kept is refused.
            Self::Rollback { catalog, back } => {
                if let Some(hash) = earlier(world, CATALOGS[catalog], back).await {
                    drop(world.rollback(CATALOGS[catalog], hash).await);
                }
            }
            Self::Remove { catalog } => world.remove(CATALOGS[catalog]).await,
            Self::Collect { generations, days } => drop(world.try_gc(&retention(generations, days)).await.unwrap()),
            Self::Pass { minutes } => world.pass(minutes * 60),
        }
    }
}

fn retention(generations: usize, days: u64) -> Retention {
    Retention {
        generations,
        max_age: Duration::from_secs(days * DAY),
        grace: Duration::from_secs(HOUR),
    }
}

async fn earlier(world: &World, catalog: &str, back: usize) -> Option<Sha256> {
    let current = world.current(catalog).await?;
    current.previous.get(back).map(|previous| previous.content_hash)
}

/// Collects until nothing is left to delete, and asserts that only published objects and the lists of the last rounds stay.
async fn assert_only_published_objects_stay(world: &World) {
    world.pass(365 * DAY);
    for _ in 0..3 {
        world.gc_round(&retention(0, 0)).await;
    }
    world.is_sound().await;
    let mut named: Vec<ObjectKey> = Vec::new();
    for catalog in CATALOGS {
        let Some(current) = world.current(catalog).await else {
            continue;
        };
        let snapshot: model::Snapshot = read_stored(&world.store, &current.snapshot.digest).await.unwrap();
        let objects = snapshot.objects().into_iter().map(|entry| entry.object);
        named.extend(
            objects
                .chain([current.snapshot])
                .filter_map(|object| ObjectKey::of(&object.key())),
        );
    }
    let left = world.keys().into_iter().filter(|key| !named.contains(key));
    let left: Vec<ObjectKey> = left.filter(|key| key.kind != model::Kind::Garbage).collect();
    assert_eq!(left, []);
    let names = world.store.read_document::<Catalogs>(&Key::Catalogs).await.unwrap();
    let names = names.map(|(names, _)| names.catalogs.len()).unwrap_or_default();
    let published = world
        .store
        .objects()
        .keys()
        .filter(|key| matches!(key, Key::Current(_)))
        .count();
    assert_eq!(names, published);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_steps_keep_published_states_whole(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            for step in &steps {
                step.take(&world).await;
                world.is_sound().await;
            }
            assert_only_published_objects_stay(&world).await;
        });
    }
}
