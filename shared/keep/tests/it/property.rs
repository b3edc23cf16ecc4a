use std::time::Duration;

use keep::GcSettings;
use layout::{Key, Sha256};
use proptest::prelude::*;

use crate::kit::{DAY, HOUR, World, catalog, current};

const CATALOGS: [&str; 3] = ["a", "b", "c"];
const PACKAGES: [&str; 6] = ["p0", "p1", "p2", "p3", "p4", "p5"];

#[derive(Debug, Clone)]
enum Step {
    Publish { catalog: usize, packages: u8 },
    Rollback { catalog: usize, back: usize },
    Remove { catalog: usize },
    Collect { generations: usize, days: u64 },
    Pass { hours: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let catalog = 0..CATALOGS.len();
    prop_oneof![
        6 => (catalog.clone(), 1_u8..64).prop_map(|(catalog, packages)| Step::Publish { catalog, packages }),
        3 => (catalog.clone(), 0_usize..5).prop_map(|(catalog, back)| Step::Rollback { catalog, back }),
        1 => catalog.prop_map(|catalog| Step::Remove { catalog }),
        4 => (0_usize..4, 0_u64..6).prop_map(|(generations, days)| Step::Collect { generations, days }),
        4 => (1_u64..100).prop_map(|hours| Step::Pass { hours }),
    ]
}

impl Step {
    async fn take(&self, world: &World) {
        match *self {
            Self::Publish { catalog, packages } => {
                let chosen = (0..PACKAGES.len()).filter(|at| packages & (1 << at) != 0);
                let chosen: Vec<&str> = chosen.map(|at| PACKAGES[at]).collect();
                world.publish(CATALOGS[catalog], &chosen).await;
            }
            // What is not kept any more is refused.
            Self::Rollback { catalog, back } => {
                if let Some(hash) = earlier(world, CATALOGS[catalog], back).await {
                    let _ = world.rollback(CATALOGS[catalog], hash).await;
                }
            }
            Self::Remove { catalog } => world.remove(CATALOGS[catalog]).await,
            Self::Collect { generations, days } => {
                world.gc(&settings(generations, days)).await;
            }
            Self::Pass { hours } => world.pass(hours * HOUR),
        }
    }
}

fn settings(generations: usize, days: u64) -> GcSettings {
    GcSettings {
        generations,
        max_age: Duration::from_secs(days * DAY),
        ..GcSettings::default()
    }
}

async fn earlier(world: &World, name: &str, back: usize) -> Option<Sha256> {
    let (current, _) = current(&world.store, &catalog(name)).await?;
    current.previous.get(back).map(|previous| previous.content_hash)
}

/// In the end only what is published is left.
async fn nothing_else_stays(world: &World) {
    world.pass(365 * DAY);
    world.gc(&settings(0, 0)).await;
    world.is_sound().await;
    let mut named: Vec<Key> = vec![Key::Sweep];
    for name in CATALOGS {
        let Some((current, _)) = current(&world.store, &catalog(name)).await else {
            continue;
        };
        let key = Key::Snapshot(catalog(name), current.content_hash);
        let snapshot = &world.store.objects()[&key];
        let snapshot: layout::Snapshot = layout::Document::from_bytes(snapshot).unwrap();
        named.extend([Key::Catalogs, Key::Current(catalog(name)), key]);
        named.extend(snapshot.objects(&catalog(name)).into_iter().map(|named| named.key));
    }
    let left: Vec<Key> = world.keys().into_iter().filter(|key| !named.contains(key)).collect();
    assert!(left.iter().all(|key| *key == Key::Catalogs), "{left:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_done_what_is_published_is_whole(steps in prop::collection::vec(step(), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            for step in &steps {
                step.take(&world).await;
                world.is_sound().await;
            }
            nothing_else_stays(&world).await;
        });
    }
}
