use std::time::Duration;

use model::{Document, Encoding, GcPhase, GcState, Key, Kind, ObjectDigest, ObjectKey, Snapshot};
use publish::PublishError;
use store::ReadStore as _;
use storekit::{Answer, Moment};
use upkeep::{GcReport, GcStep, Retention, UnreadableState};

use super::kit::{DAY, HOUR, World, built, commit, name, put_all, shard};

/// A catalog, and a shard that nothing names.
async fn world() -> World {
    let world = World::new();
    world.publish("a", &["p1", "p2"]).await;
    world.publish("gone", &["p2", "p3"]).await;
    world.remove("gone").await;
    world
}

/// Returns the catalogs and keys of states that cannot be read.
fn named(states: &[UnreadableState]) -> Vec<(&str, String)> {
    let named = states.iter();
    named
        .map(|state| (state.catalog.as_str(), state.key.clone()))
        .collect()
}

/// Runs a collector that has no time to delete.
async fn cut_off(world: &World) -> GcReport {
    let run = world.try_gc(|options| options.time = Some(Duration::ZERO));
    run.await.unwrap()
}

#[tokio::test]
async fn gc_takes_one_step_after_each_two_hours() {
    let world = world().await;
    let condemned = world.gc().await;
    assert_eq!(
        (condemned.step, condemned.state),
        (GcStep::Condemn, "condemned")
    );
    // The shard of p3, both encodings, index and Snapshot of the removed catalog.
    assert_eq!((condemned.condemned.objects, condemned.catalogs), (5, 1));
    world.pass(2 * HOUR - 1);
    let waiting = world.gc().await;
    assert_eq!(
        (waiting.step, waiting.age_seconds),
        (GcStep::Wait, 2 * HOUR - 1)
    );
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
    assert_eq!(
        world.gc().await.step,
        GcStep::Wait,
        "the next round waits too"
    );
    world.pass(2 * HOUR);
    // The lists of the round wait for other garbage.
    world.store.take_log();
    assert_eq!(world.gc().await.step, GcStep::Clean);
    assert_eq!(world.store.written(), []);
    let orphan = ObjectDigest::of(b"orphan").with_kind(Kind::Package);
    world.put(&orphan.key(), "orphan").await;
    // The orphan, and the one list of both steps.
    assert_eq!(world.gc().await.condemned.objects, 2);
}

#[tokio::test]
async fn gc_dry_run_counts_and_writes_nothing() {
    let world = world().await;
    let before = world.store.objects();
    let report = world
        .try_gc(|options| options.dry_run = true)
        .await
        .unwrap();
    assert_eq!((report.condemned.objects, report.dry_run), (5, true));
    assert_eq!(world.store.objects(), before);
}

#[tokio::test]
async fn gc_offline_skips_the_waits() {
    let world = world().await;
    let report = world
        .try_gc(|options| options.offline = true)
        .await
        .unwrap();
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
    assert_eq!(
        (state.since, state.counter),
        (Some(began), 2),
        "one write for all keys"
    );
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
async fn deletes_continue_in_another_run_and_stop_after_thirty_minutes() {
    for (minutes, step) in [(29, GcStep::Delete), (30, GcStep::Wait)] {
        let world = world().await;
        world.gc().await;
        world.pass(2 * HOUR);
        let cut_off = cut_off(&world).await;
        assert_eq!((cut_off.state, cut_off.left.objects), ("deleting", 5));
        world.pass(minutes * 60);
        assert_eq!(world.gc().await.step, step);
        assert_eq!(world.has(&shard("p3")), step == GcStep::Wait);
        // The next round deletes it.
        world.pass(2 * HOUR);
        assert_eq!(world.gc().await.step, GcStep::Finish);
        world.gc_round().await;
        assert!(!world.has(&shard("p3")));
    }
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
        |snapshot: &Snapshot| world.has(&snapshot.all.gzip.with_kind(Kind::All(Encoding::Gzip)));
    let keeping = |generations| Retention {
        generations,
        ..Retention::default()
    };
    world.gc_round_with(&keeping(0)).await;
    assert_eq!([has(&first), has(&second)], [false, true], "a day of grace");
    world.pass(DAY);
    world.gc_round_with(&keeping(1)).await;
    assert!(has(&second));
    world.pass(31 * DAY);
    world.gc_round_with(&keeping(1)).await;
    assert!(!has(&second), "replaced more than 30 days ago");
    world.is_sound().await;
}

#[tokio::test]
async fn catalog_whose_name_is_lost_keeps_its_objects() {
    let world = world().await;
    world.store.lose(&Key::Catalogs);
    world.gc_round().await;
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
            Some(bytes) => world.put(&key, bytes).await,
        }
        let error = world.try_gc(|_| {}).await.unwrap_err();
        assert_eq!(named(error.unreadable()), [("a", key.to_string())]);
        let text = error.to_string();
        for part in ["--repair-from", "--force", &key.to_string()] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!world.store.objects().contains_key(&Key::Gc));
        world.put(&key, sound).await;
    }
    // All of them at once, so that one repair does not only show the next.
    world.publish("b", &["p1"]).await;
    let (a, b) = (
        Key::Current(name("a")),
        world.current("b").await.unwrap().snapshot.key(),
    );
    for key in [&a, &b] {
        world.put(key, "{").await;
    }
    let error = world.try_gc(|_| {}).await.unwrap_err();
    assert_eq!(
        named(error.unreadable()),
        [("a", a.to_string()), ("b", b.to_string())]
    );
}

#[tokio::test]
async fn gc_goes_on_beside_a_damaged_earlier_snapshot_and_reports_it() {
    for is_lost in [false, true] {
        let world = world().await;
        world.publish("a", &["p1"]).await;
        let earlier = world.current("a").await.unwrap().previous[0].snapshot.key();
        if is_lost {
            world.store.lose(&earlier);
        } else {
            world.put(&earlier, "damaged").await;
        }
        let condemned = world.gc().await;
        assert_eq!(condemned.step, GcStep::Condemn);
        let damaged = (!is_lost).then(|| ("a", earlier.to_string()));
        assert_eq!(named(&condemned.unreadable), Vec::from_iter(damaged));
        world.gc_round().await;
        world.is_sound().await;
        assert!(
            !world.store.objects().contains_key(&earlier),
            "it is garbage itself"
        );
    }
}

#[tokio::test]
async fn spare_whose_answer_was_lost_is_not_written_twice() {
    let world = world().await;
    world.gc().await;
    world.at_put(Key::Gc, Moment::After, || Answer::Conflict);
    world.publish("b", &["p3"]).await;
    assert_eq!(world.state().await.counter, 2);
    world.store.clear_hook();
    world.pass(2 * HOUR);
    world.gc().await;
    world.is_sound().await;
}

#[tokio::test]
async fn state_of_another_format_stops_publications_and_gc() {
    let world = world().await;
    let newer = String::from_utf8(GcState::default().to_bytes()).unwrap();
    let newer = newer.replace("\"formatVersion\": 3", "\"formatVersion\": 4");
    world.put(&Key::Gc, newer.clone()).await;
    assert!(world.try_gc(|_| {}).await.is_err());
    assert!(world.try_publish("b", &["p4"]).await.is_err());
    assert_eq!(world.store.objects()[&Key::Gc], newer);
}
