use std::time::Duration;

use keep::{GcError, GcSettings, SettleError, Watch};
use layout::{Catalogs, Current, Document, Key, PREVIOUS_MAX, Sha256, Snapshot, Sweep};
use store::{Condition, Store, StoreExt};

use crate::kit::{DAY, HOUR, World, catalog, shard};

/// Two publications of `a` that share a package, and one of `b` that shares another.
async fn world() -> (World, Sha256, Sha256) {
    let world = World::new();
    let first = world.publish("a", &["old", "same", "shared"]).await;
    world.pass(DAY);
    let second = world.publish("a", &["new", "same"]).await;
    world.publish("b", &["shared"]).await;
    (world, first, second)
}

fn snapshot(name: &str, hash: Sha256) -> Key {
    Key::Snapshot(catalog(name), hash)
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_stays_until_it_has_been_replaced_for_too_long() {
    let (world, first, second) = world().await;
    let before = world.keys();
    world.pass(29 * DAY);
    let report = world.gc(&GcSettings::default()).await;
    assert_eq!((report.swept.objects, report.waiting.objects), (0, 0), "{report:?}");
    assert_eq!((report.catalogs, report.snapshots), (2, 3));
    assert!(before.is_subset(&world.keys()));

    world.pass(2 * DAY);
    let report = world.gc(&GcSettings::default()).await;
    assert_eq!((report.expired, report.snapshots), (1, 2), "{report:?}");
    assert_eq!(
        report.swept.objects, 5,
        "the shard, two forms, the index, the snapshot: {report:?}"
    );
    let keys = world.keys();
    assert!(!keys.contains(&snapshot("a", first)) && keys.contains(&snapshot("a", second)));
    assert!(!keys.contains(&shard("old")));
    assert!(keys.contains(&shard("same")) && keys.contains(&shard("shared")));
    world.is_sound().await;
    let verified = keep::verify(&world.store, &catalog("a")).await.unwrap();
    assert_eq!((verified.snapshots, verified.expired), (1, 1));
}

/// However often a catalog changes: what was replaced an hour ago may still be read, remembered or not.
#[tokio::test(start_paused = true)]
async fn what_falls_out_of_the_history_has_its_grace_too() {
    let world = World::new();
    let old = world.publish("a", &["old"]).await;
    world.pass(2 * DAY);
    for number in 0..=PREVIOUS_MAX {
        world.pass(60);
        world.publish("a", &[&format!("p{number}")]).await;
    }
    world.pass(HOUR);
    world.gc(&GcSettings::default()).await;
    let keys = world.keys();
    assert!(keys.contains(&snapshot("a", old)) && keys.contains(&shard("old")));

    world.pass(DAY);
    world.gc(&GcSettings::default()).await;
    let keys = world.keys();
    assert!(!keys.contains(&snapshot("a", old)) && !keys.contains(&shard("old")));
    world.is_sound().await;
}

#[tokio::test(start_paused = true)]
async fn only_so_many_generations_stay() {
    let world = World::new();
    let mut hashes = Vec::new();
    for package in ["p1", "p2", "p3", "p4"] {
        hashes.push(world.publish("a", &[package]).await);
    }
    let settings = GcSettings {
        generations: 1,
        ..GcSettings::default()
    };
    world.pass(23 * HOUR);
    world.gc(&settings).await;
    assert!(
        world.keys().contains(&snapshot("a", hashes[0])),
        "caches may still lead to what was replaced within the grace period"
    );
    world.pass(2 * HOUR);
    world.gc(&settings).await;
    let kept: Vec<bool> = hashes
        .iter()
        .map(|hash| world.keys().contains(&snapshot("a", *hash)))
        .collect();
    assert_eq!(kept, [false, false, true, true]);
    world.is_sound().await;
}

#[tokio::test(start_paused = true)]
async fn a_content_that_came_back_is_published_and_not_expired() {
    let world = World::new();
    let first = world.publish("a", &["p1"]).await;
    world.pass(40 * DAY);
    world.publish("a", &["p2"]).await;
    world.rollback("a", first).await.unwrap();
    world.pass(40 * DAY);
    let report = world.gc(&GcSettings::default()).await;
    assert_eq!(report.expired, 1);
    assert!(world.keys().contains(&snapshot("a", first)));
    world.is_sound().await;
}

#[tokio::test(start_paused = true)]
async fn leftovers_wait_for_the_grace_period() {
    let world = World::new();
    world.publish("a", &["p1"]).await;
    let orphan = Key::Shard(Sha256::of(b"orphan"));
    world
        .store
        .put(&orphan, "orphan".into(), Condition::CreateOnly)
        .await
        .unwrap();
    world.pass(23 * HOUR);
    let report = world.gc(&GcSettings::default()).await;
    assert_eq!((report.waiting.objects, report.swept.objects), (1, 0));
    world.pass(2 * HOUR);
    let report = world.gc(&GcSettings::default()).await;
    assert_eq!((report.waiting.objects, report.swept.objects), (0, 1));
    assert!(!world.keys().contains(&orphan));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_writes_nothing_and_counts_the_same() {
    let world = World::new();
    world.publish("a", &["p1"]).await;
    world.publish("a", &["p2"]).await;
    let before = world.store.objects();
    let settings = GcSettings {
        generations: 0,
        ..GcSettings::default()
    };
    // It asks the machine's clock, which the world's is far behind or ahead of.
    world.pass(100 * 365 * DAY);
    let dry = GcSettings {
        dry_run: true,
        ..settings.clone()
    };
    let told = world.gc(&dry).await;
    assert_eq!(world.store.objects(), before);
    let done = world.gc(&settings).await;
    assert!(told.dry_run && done.swept.objects == 5, "{told:?} {done:?}");
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_is_not_listed_keeps_its_objects() {
    let (world, ..) = world().await;
    let names = Catalogs::from_iter([catalog("a")]);
    let written = world.store.write_document(&Key::Catalogs, &names, Condition::Always);
    written.await.unwrap();
    world.pass(100 * DAY);
    world.gc(&GcSettings::default()).await;
    world.is_sound().await;
    assert!(world.keys().contains(&shard("shared")));
}

#[tokio::test(start_paused = true)]
async fn the_shards_of_a_removed_catalog_go_with_what_was_left_of_it() {
    let (world, ..) = world().await;
    world.remove("a").await;
    let status = Key::Status(catalog("a"));
    world.store.put(&status, "{}".into(), Condition::Always).await.unwrap();
    world.pass(2 * DAY);
    world.gc(&GcSettings::default()).await;
    let keys = world.keys();
    assert!(keys.contains(&shard("shared")), "b names it");
    for gone in [shard("old"), shard("new"), shard("same"), status] {
        assert!(!keys.contains(&gone), "{gone}");
    }
    world.is_sound().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_while_it_cannot_be_told_what_is_named() {
    let (world, first, second) = world().await;
    world.pass(10 * DAY);
    let objects = world.store.objects();
    let other = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\"metas\": 2", "\"metas\": 3");
    let damages: [(Key, Option<Vec<u8>>); 6] = [
        (Key::Catalogs, Some(b"no json".to_vec())),
        (Key::Current(catalog("b")), Some(b"no json".to_vec())),
        (snapshot("a", first), Some(b"no json".to_vec())),
        (snapshot("a", first), Some(objects[&snapshot("a", second)].to_vec())),
        (
            snapshot("a", second),
            Some(other(&objects[&snapshot("a", second)]).into_bytes()),
        ),
        (snapshot("a", second), None),
    ];
    for (key, damage) in damages {
        match damage {
            Some(bytes) => world.store.corrupt(&key, bytes),
            None => world.store.delete(&key).await.unwrap(),
        }
        let before = world.keys();
        let failed = world.try_gc(&GcSettings::default()).await.unwrap_err();
        assert!(
            matches!(failed, GcError::Read(_) | GcError::Mistaken(_) | GcError::Missing(_)),
            "{key}: {failed}"
        );
        assert!(before.is_subset(&world.keys()));
        let sound = objects[&key].clone();
        world.store.put(&key, sound, Condition::Always).await.unwrap();
    }
    world.gc(&GcSettings::default()).await;
    world.is_sound().await;
}

#[tokio::test(start_paused = true)]
async fn a_document_from_the_future_stops_it() {
    let (world, ..) = world().await;
    let key = Key::Current(catalog("a"));
    let (current, _) = world.store.read_document::<Current>(&key).await.unwrap().unwrap();
    let text = String::from_utf8(current.to_bytes()).unwrap();
    let future = text.replace("\"formatVersion\": 1", "\"formatVersion\": 2");
    world.store.corrupt(&key, future);
    world.pass(100 * DAY);
    assert!(matches!(
        world.try_gc(&GcSettings::default()).await,
        Err(GcError::Read(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_short_grace_period_is_refused() {
    let world = World::new();
    let settings = |grace| GcSettings {
        grace: Duration::from_secs(grace),
        ..GcSettings::default()
    };
    assert!(matches!(
        world.try_gc(&settings(HOUR - 1)).await,
        Err(GcError::Grace(_))
    ));
    world.gc(&settings(HOUR)).await;
}

/// A bit that turned in a Snapshot may leave it readable, and let it name other objects than it did.
#[tokio::test(start_paused = true)]
async fn an_earlier_snapshot_has_to_be_the_one_that_was_published() {
    let (world, first, _) = world().await;
    let key = snapshot("a", first);
    let sound = world.store.objects()[&key].clone();
    world.pass(10 * DAY);
    let other = String::from_utf8(sound.to_vec()).unwrap().replacen("\": ", "\" :", 1);
    world.store.corrupt(&key, other);
    let verified = keep::verify(&world.store, &catalog("a")).await.unwrap();
    let found: Vec<&str> = verified.findings.iter().map(|finding| &*finding.key).collect();
    assert_eq!(found, [key.to_string()]);
    let before = world.store.objects();
    let collected = keep::gc(&world.store, &GcSettings::default()).await;
    assert!(matches!(collected, Err(GcError::Mistaken(found)) if found == key.to_string()));
    let is_content = |key: &&Key| key.is_immutable();
    let after = world.store.objects();
    assert!(before.keys().filter(is_content).eq(after.keys().filter(is_content)));
    world.store.corrupt(&key, sound);
    assert_eq!(keep::verify(&world.store, &catalog("a")).await.unwrap().findings, []);
}

/// Nothing is left of `a`, nor its name.
async fn assert_gone(world: &World) {
    assert!(!world.keys().iter().any(|key| key.catalog() == Some(&catalog("a"))));
    let names = world.read::<Catalogs>(&Key::Catalogs).await;
    assert!(!names.catalogs.contains(&catalog("a")));
}

/// Whoever publishes a catalog again while it is removed has said so, and relies on what lies there.
#[tokio::test(start_paused = true)]
async fn a_removal_spares_what_is_about_to_be_published() {
    let (world, first, second) = world().await;
    let document = world.read::<Snapshot>(&snapshot("a", second)).await;
    let watch = Watch::start(&world.store).await.unwrap();
    let _announced = watch.settle(&world.store, &catalog("a"), &document).await.unwrap();
    world.remove("a").await;
    let keys = world.keys();
    assert!(keys.contains(&snapshot("a", second)) && !keys.contains(&snapshot("a", first)));
    assert!(!keys.contains(&Key::Current(catalog("a"))));
    let names = world.read::<Catalogs>(&Key::Catalogs).await;
    assert!(names.catalogs.contains(&catalog("a")), "it would never be found");

    world.pass(2 * HOUR);
    world.remove("a").await;
    assert_gone(&world).await;
    world.is_sound().await;
}

/// Readers have their grace from sweeps, and not when the catalog is removed on purpose.
#[tokio::test(start_paused = true)]
async fn a_removal_spares_nothing_for_readers() {
    let (world, first, second) = world().await;
    let document = world.read::<Snapshot>(&snapshot("a", second)).await;
    // The second time it is there already.
    for _ in 0..2 {
        let mut watch = Watch::start(&world.store).await.unwrap();
        watch.spare(first);
        let announced = watch.settle(&world.store, &catalog("a"), &document).await.unwrap();
        announced.withdraw(&world.store).await;
    }
    assert!(world.keys().contains(&Key::Intent(catalog("a"), first)));
    world.remove("a").await;
    assert_gone(&world).await;
}

/// It took what it could, and died without a word.
#[tokio::test(start_paused = true)]
async fn a_sweep_that_had_begun_before_a_publication_is_looked_after_too() {
    let (world, _, second) = world().await;
    let sweep = Sweep {
        serial: 7,
        active: true,
    };
    let written = world.store.write_document(&Key::Sweep, &sweep, Condition::Always);
    written.await.unwrap();
    let snapshot = world.read::<Snapshot>(&snapshot("a", second)).await;
    let watch = Watch::start(&world.store).await.unwrap();
    world.store.delete(&shard("new")).await.unwrap();
    let settled = watch.settle(&world.store, &catalog("a"), &snapshot).await;
    assert!(matches!(settled, Err(SettleError::Swept(gone)) if gone == shard("new").to_string()));
}
