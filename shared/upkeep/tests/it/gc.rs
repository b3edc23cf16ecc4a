use std::time::Duration;

use catalog_mirror_upkeep::{GcError, GcOptions, GcReport, GcStep, Retention, gc};
use model::{Document, Facts, GcPhase, GcState, Key, ObjectKey};
use publish::PublishError;
use store::{Condition, Store, StoreExt};
use storekit::Action;

use super::kit::{DAY, HOUR, World, built, commit, name, put_all, shard};

/// A catalog, and a shard that nothing names.
async fn world() -> World {
    let world = World::new();
    world.publish("a", &["p1", "p2"]).await;
    world.publish("gone", &["p2", "p3"]).await;
    world.remove("gone").await;
    world
}

fn is_condemned(state: &GcState) -> bool {
    matches!(state.phase, GcPhase::Condemned { .. })
}

/// Runs a collector that has no time to delete.
async fn cut_off(world: &World) -> GcReport {
    let options = GcOptions {
        time: Some(Duration::ZERO),
        env: world.env.clone(),
        ..GcOptions::default()
    };
    gc(&world.store, &options).await.unwrap()
}

#[tokio::test]
async fn gc_takes_one_step_after_each_two_hours() {
    let world = world().await;
    let condemned = world.gc().await;
    assert_eq!((condemned.step, condemned.state), (GcStep::Condemn, "condemned"));
    // The shard of p3, both encodings, index and Snapshot of the removed catalog.
    assert_eq!((condemned.condemned.objects, condemned.catalogs), (5, 1));
    world.pass(2 * HOUR - 1);
    let waiting = world.gc().await;
    assert_eq!((waiting.step, waiting.age_seconds), (GcStep::Wait, 2 * HOUR - 1));
    let next = waiting.next.unwrap();
    assert_eq!((next.step, next.due_in_seconds), (GcStep::Delete, 1));
    assert!(world.has(&shard("p3")));

    world.pass(1);
    let deleted = world.gc().await;
    assert_eq!((deleted.step, deleted.state), (GcStep::Delete, "deleting"));
    assert_eq!((deleted.deleted.objects, deleted.left.objects), (5, 0));
    assert!(!world.has(&shard("p3")) && world.has(&shard("p2")));
    world.is_sound().await;

    world.pass(2 * HOUR - 1);
    assert_eq!(world.gc().await.step, GcStep::Wait);
    world.pass(1);
    let finished = world.gc().await;
    assert_eq!((finished.step, finished.state), (GcStep::Finish, "none"));
    assert_eq!(world.gc().await.step, GcStep::Wait, "the next round waits too");
    world.pass(2 * HOUR);
    // The lists of the round wait for other garbage.
    assert_eq!(world.gc().await.step, GcStep::Clean);
    world.orphan("orphan").await;
    assert_eq!(
        world.gc().await.condemned.objects,
        2,
        "the orphan, and the one list of both steps"
    );
}

#[tokio::test]
async fn gc_of_a_clean_store_writes_nothing() {
    let world = World::new();
    world.publish("a", &["p1"]).await;
    world.store.take_log();
    assert_eq!(world.gc().await.step, GcStep::Clean);
    assert!(world.store.written().is_empty());
}

#[tokio::test]
async fn gc_dry_run_counts_and_writes_nothing() {
    let world = world().await;
    let before = world.store.objects();
    let options = GcOptions {
        dry_run: true,
        ..GcOptions::default()
    };
    let report = gc(&world.store, &options).await.unwrap();
    assert_eq!((report.condemned.objects, report.dry_run), (5, true));
    assert_eq!(world.store.objects(), before);
}

#[tokio::test]
async fn gc_offline_skips_the_waits() {
    let world = world().await;
    let options = GcOptions {
        offline: true,
        env: world.env.clone(),
        ..GcOptions::default()
    };
    let report = gc(&world.store, &options).await.unwrap();
    assert!(report.deleted.objects >= 5, "{report:?}");
    assert_eq!((report.state, report.left.objects), ("none", 0));
    assert!(!world.has(&shard("p3")));
    world.is_sound().await;
}

#[tokio::test]
async fn publication_spares_a_condemned_object_and_keeps_the_time() {
    let world = world().await;
    world.gc().await;
    let began = world.store.head(&Key::Gc).await.unwrap().unwrap().modified;
    world.pass(HOUR);
    world.publish("b", &["p3"]).await;
    let state = world.state().await;
    let GcPhase::Condemned { spared, .. } = &state.phase else {
        panic!("{state:?}");
    };
    assert!(spared.contains(&ObjectKey::of(&shard("p3").key()).unwrap()));
    assert_eq!((state.since, state.counter), (Some(began), 2), "one write for all keys");
    world.pass(HOUR);
    let report = world.gc().await;
    assert_eq!(report.step, GcStep::Delete);
    assert!(world.has(&shard("p3")));
    world.is_sound().await;
}

#[tokio::test]
async fn publication_of_an_object_that_is_being_deleted_is_deferred() {
    let world = world().await;
    world.gc().await;
    world.pass(2 * HOUR);
    world.gc().await;
    let error = world.try_publish("b", &["p3"]).await.unwrap_err();
    assert!(matches!(error, PublishError::Deferred(_)), "{error}");
    assert!(!world.has(&shard("p3")), "a late delete could hit it");
    assert!(world.current("b").await.is_none());
    world.publish("c", &["p4"]).await;
    world.pass(2 * HOUR);
    world.gc().await;
    world.publish("b", &["p3"]).await;
    world.is_sound().await;
}

#[tokio::test]
async fn second_marking_keeps_objects_that_were_published_meanwhile() {
    let world = world().await;
    // It reads gc.json before the objects are condemned, so it does not spare them.
    let built = built(&["p3"]);
    let transaction = world.begin("b").await;
    put_all(&transaction, &built).await.unwrap();
    world.gc().await;
    assert!(is_condemned(&world.state().await));
    world.pass(HOUR);
    commit(&transaction, &built).await.unwrap();
    world.pass(HOUR);
    world.gc().await;
    assert!(world.has(&shard("p3")));
    world.is_sound().await;
}

#[tokio::test]
async fn publication_after_more_than_an_hour_expires_by_either_clock() {
    for own_only in [false, true] {
        let world = world().await;
        let built = built(&["p4"]);
        let transaction = world.begin("b").await;
        put_all(&transaction, &built).await.unwrap();
        match own_only {
            true => world.pass_own(HOUR + 1),
            false => world.pass(HOUR + 1),
        }
        let error = commit(&transaction, &built).await.unwrap_err();
        assert!(matches!(error, PublishError::Expired), "{error}");
        assert!(world.current("b").await.is_none());
    }
}

#[tokio::test]
async fn deletes_stop_after_thirty_minutes() {
    let world = world().await;
    world.gc().await;
    world.pass(2 * HOUR);
    let cut_off = cut_off(&world).await;
    assert_eq!((cut_off.state, cut_off.left.objects), ("deleting", 5));
    world.pass(30 * 60);
    assert_eq!(world.gc().await.step, GcStep::Wait);
    assert!(world.has(&shard("p3")));
    // The next round deletes it.
    world.pass(2 * HOUR);
    assert_eq!(world.gc().await.step, GcStep::Finish);
    world.gc_round(&Retention::default()).await;
    assert!(!world.has(&shard("p3")));
}

#[tokio::test]
async fn deletes_continue_in_another_run_within_thirty_minutes() {
    let world = world().await;
    world.gc().await;
    world.pass(2 * HOUR);
    cut_off(&world).await;
    world.pass(29 * 60);
    let report = world.gc().await;
    assert_eq!((report.step, report.deleted.objects), (GcStep::Delete, 5));
}

#[tokio::test]
async fn unreadable_list_ends_the_round_and_stops_no_publication() {
    let world = world().await;
    world.gc().await;
    let list = world.state().await.garbage().unwrap().key();
    world.store.lose(&list);
    world.publish("b", &["p3"]).await;
    world.pass(2 * HOUR);
    assert_eq!(world.gc().await.step, GcStep::Finish);
    world.is_sound().await;
}

#[tokio::test]
async fn retention_keeps_generations_by_number_age_and_grace() {
    let world = World::new();
    let first = world.publish("a", &["p1"]).await;
    world.pass(10 * DAY);
    let second = world.publish("a", &["p2"]).await;
    world.pass(10 * DAY);
    world.publish("a", &["p3"]).await;
    let has =
        |snapshot: &model::Snapshot| world.has(&snapshot.all.gzip.with_kind(model::Kind::All(model::Encoding::Gzip)));
    let none = Retention {
        generations: 0,
        ..Retention::default()
    };
    world.gc_round(&none).await;
    assert_eq!([has(&first), has(&second)], [false, true], "a day of grace");
    world.pass(DAY);
    let one = Retention {
        generations: 1,
        ..Retention::default()
    };
    world.gc_round(&one).await;
    assert!(has(&second));
    world.pass(31 * DAY);
    world.gc_round(&one).await;
    assert!(!has(&second), "replaced more than 30 days ago");
    world.is_sound().await;
}

#[tokio::test]
async fn catalog_whose_name_is_lost_keeps_its_objects() {
    let world = world().await;
    world.store.lose(&Key::Catalogs);
    world.gc_round(&Retention::default()).await;
    world.publish("b", &["p4"]).await;
    world.is_sound().await;
}

#[tokio::test]
async fn gc_names_each_catalog_that_it_cannot_read_and_condemns_nothing() {
    let world = world().await;
    world.publish("a", &["p1"]).await;
    let current = world.current("a").await.unwrap();
    for (key, bytes) in [
        (current.snapshot.key(), None),
        (current.snapshot.key(), Some("damaged")),
        (Key::Current(name("a")), Some("{")),
        (Key::Current(name("a")), Some(r#"{"formatVersion":4}"#)),
    ] {
        let sound = world.store.objects()[&key].clone();
        match bytes {
            None => world.store.lose(&key),
            Some(bytes) => drop(world.store.put(&key, bytes.into(), Condition::Always).await.unwrap()),
        }
        let error = world.try_gc(&Retention::default()).await.unwrap_err();
        let GcError::Unreadable(states) = &error else {
            panic!("{key}: {error}");
        };
        let named: Vec<_> = states
            .iter()
            .map(|state| (state.catalog.clone(), state.key.clone()))
            .collect();
        assert_eq!(named, [(name("a"), key.to_string())]);
        let text = error.to_string();
        assert!(
            text.contains("--repair-from") && text.contains("--force") && text.contains(&key.to_string()),
            "{text}"
        );
        assert!(!world.store.objects().contains_key(&Key::Gc));
        world.store.put(&key, sound, Condition::Always).await.unwrap();
    }
    // All of them at once, so that one repair does not only show the next.
    world.publish("b", &["p1"]).await;
    let other = world.current("b").await.unwrap();
    for (key, bytes) in [(other.snapshot.key(), "damaged"), (Key::Current(name("a")), "{")] {
        world.store.put(&key, bytes.into(), Condition::Always).await.unwrap();
    }
    let error = world.try_gc(&Retention::default()).await.unwrap_err();
    let named: Vec<_> = error.unreadable().iter().map(|state| state.catalog.as_str()).collect();
    assert_eq!(named, ["a", "b"]);
}

#[tokio::test]
async fn gc_goes_on_beside_a_damaged_earlier_snapshot_and_reports_it() {
    let world = world().await;
    world.publish("a", &["p1"]).await;
    let current = world.current("a").await.unwrap();
    let earlier = current.previous[0].snapshot.key();
    world
        .store
        .put(&earlier, "damaged".into(), Condition::Always)
        .await
        .unwrap();
    let condemned = world.gc().await;
    assert_eq!(condemned.step, GcStep::Condemn);
    let named: Vec<_> = condemned
        .unreadable
        .iter()
        .map(|state| (state.catalog.as_str(), state.key.clone()))
        .collect();
    assert_eq!(named, [("a", earlier.to_string())]);
    world.gc_round(&Retention::default()).await;
    world.is_sound().await;
    assert!(!world.store.objects().contains_key(&earlier), "it is garbage itself");
}

#[tokio::test]
async fn gc_ignores_an_earlier_snapshot_that_is_gone() {
    let world = world().await;
    world.publish("a", &["p1"]).await;
    let current = world.current("a").await.unwrap();
    world.store.lose(&current.previous[0].snapshot.key());
    assert_eq!(world.gc().await.step, GcStep::Condemn);
}

#[tokio::test]
async fn spare_whose_answer_was_lost_is_not_written_twice() {
    use storekit::{Answer, Moment};
    let world = world().await;
    world.gc().await;
    let lost = std::sync::atomic::AtomicBool::new(false);
    world.store.set_hook(move |call, moment| {
        let is_spare = matches!(call.action, Action::Put(_)) && call.key == Some(Key::Gc);
        if is_spare && moment == Moment::After && !lost.swap(true, std::sync::atomic::Ordering::Relaxed) {
            return Answer::Conflict;
        }
        Answer::GoOn
    });
    world.publish("b", &["p3"]).await;
    assert_eq!(world.state().await.counter, 2);
    world.pass(2 * HOUR);
    world.gc().await;
    world.is_sound().await;
}

#[tokio::test]
async fn state_of_another_format_stops_publications_and_gc() {
    let world = world().await;
    let newer = String::from_utf8(GcState::default().to_bytes()).unwrap();
    let newer = newer.replace("\"formatVersion\": 3", "\"formatVersion\": 4");
    world
        .store
        .put(&Key::Gc, newer.into(), Condition::Always)
        .await
        .unwrap();
    assert!(world.try_gc(&Retention::default()).await.is_err());
    assert!(world.try_publish("b", &["p4"]).await.is_err());
    let state = world.store.read_document::<GcState>(&Key::Gc).await;
    assert!(state.is_err());
}

#[tokio::test]
async fn gc_keeps_facts_of_kept_states_and_deletes_others() {
    let world = World::new();
    let with_facts = |version: u32| {
        let facts: Facts = Facts::new(version);
        testkit::SnapshotBuilder::new().facts("findings", &facts).build()
    };
    let built = with_facts(1);
    let transaction = world.begin("c").await;
    put_all(&transaction, &built).await.unwrap();
    commit(&transaction, &built).await.unwrap();
    let orphan = with_facts(2);
    put_all(&world.begin("c").await, &orphan).await.unwrap();
    let kept = built.snapshot.facts("findings").unwrap();
    let lost = orphan.snapshot.facts("findings").unwrap();
    assert!(world.has(&kept) && world.has(&lost));
    world.pass(3 * DAY);
    for _ in 0..3 {
        world.gc_round(&Retention::default()).await;
    }
    assert!(world.has(&kept) && !world.has(&lost));
    world.is_sound().await;
}
