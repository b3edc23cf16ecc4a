use std::time::Duration;

use model::Key;
use publish::{PublishError, RetryableError};
use store::Store;
use storekit::{Action, Answer, Moment};

use super::kit::{HOUR, World, built, name, shard};

/// The first answer was lost, and the client's own retry was refused.
#[tokio::test]
async fn commit_whose_answer_was_lost_succeeds() {
    let world = World::new();
    world.at_put(Key::Current(name("a")), Moment::After, || Answer::Conflict);
    assert_eq!(world.try_publish("a", &["p1"]).await.unwrap().serial, 1);
}

#[tokio::test(start_paused = true)]
async fn commit_without_an_answer_times_out_as_a_race() {
    let world = World::new();
    world.at_put(Key::Current(name("a")), Moment::Before, || {
        Answer::Wait(Box::pin(std::future::pending()))
    });
    let error = world.try_publish("a", &["p1"]).await.unwrap_err();
    let is_timeout = matches!(error, PublishError::CommitTimeout);
    assert!(is_timeout && error.is_race(), "{error}");
}

#[tokio::test]
async fn put_verified_overwrites_damaged_bytes_and_keeps_sound_ones() {
    let world = World::new();
    let built = built(&["p1"]);
    let (object, key) = (shard("p1"), shard("p1").key());
    let bytes = built.objects[&key].clone();
    let transaction = world.begin("a").await;
    assert!(
        transaction
            .put_verified(object, bytes.clone())
            .await
            .unwrap()
    );
    assert!(
        !transaction
            .put_verified(object, bytes.clone())
            .await
            .unwrap()
    );
    world.store.corrupt(&key, "damaged");
    assert!(
        transaction
            .put_verified(object, bytes.clone())
            .await
            .unwrap()
    );
    assert_eq!(world.store.objects()[&key], bytes);
    assert_eq!(
        (transaction.written().objects, transaction.replaced()),
        (2, vec![key])
    );
    assert_eq!(world.store.count(|action| *action == Action::Delete), 0);
}

/// Finding 13: a collection deletes the object between the refused put and the check of it.
#[tokio::test]
async fn put_verified_writes_again_if_object_vanishes_after_a_conflict() {
    let world = World::new();
    let (object, key) = (shard("p1"), shard("p1").key());
    let bytes = built(&["p1"]).objects[&key].clone();
    world.put(&key, bytes.clone()).await;
    let (store, vanishing) = (world.store.clone(), key.clone());
    world.store.set_hook(move |call, moment| {
        if call.action == Action::Get
            && call.key.as_ref() == Some(&vanishing)
            && moment == Moment::Before
        {
            store.lose(&vanishing);
        }
        Answer::GoOn
    });
    assert!(
        world
            .begin("a")
            .await
            .put_verified(object, bytes)
            .await
            .unwrap()
    );
    assert!(world.has(&object));
}

#[tokio::test]
async fn put_staged_replaces_a_damaged_object_when_it_rechecks() {
    let world = World::new();
    let (object, key) = (shard("p1"), shard("p1").key());
    let bytes = built(&["p1"]).objects[&key].clone();
    world.put(&key, "damaged").await;
    for (recheck, expected) in [(false, None), (true, Some(true)), (true, Some(false))] {
        let mut staged = world.store.stage().await.unwrap();
        staged.write(bytes.clone()).await.unwrap();
        let put = world
            .begin_with("a", recheck)
            .await
            .put_staged(object, staged)
            .await;
        match expected {
            None => assert!(put.unwrap_err().is_damage()),
            Some(written) => assert_eq!(put.unwrap(), written),
        }
    }
    assert_eq!(world.store.objects()[&key], bytes);
}

#[tokio::test]
async fn find_trusts_the_published_snapshot_unless_it_rechecks() {
    let world = World::new();
    world.publish("a", &["p1"]).await;
    let object = shard("p1");
    world.store.corrupt(&object.key(), "damaged");
    assert!(world.begin("a").await.find(&object).await.unwrap());
    assert!(
        !world
            .begin_with("a", true)
            .await
            .find(&object)
            .await
            .unwrap()
    );
    assert!(!world.begin("b").await.find(&object).await.unwrap());
}

#[tokio::test]
async fn publications_are_dated_by_the_store_and_never_go_back() {
    let world = World::new();
    let first = world.try_publish("a", &["p1"]).await.unwrap().published_at;
    let second = world.try_publish("a", &["p2"]).await.unwrap().published_at;
    assert_eq!(second, first + Duration::from_secs(1));
    world.pass(HOUR);
    world.pass_own(7 * HOUR);
    let third = world.try_publish("a", &["p3"]).await.unwrap().published_at;
    assert_eq!(third, first + Duration::from_secs(HOUR));
}

#[tokio::test]
async fn commit_without_changes_restores_a_lost_list_of_names() {
    let world = World::new();
    world.publish("a", &["p1"]).await;
    world.publish("b", &["p1"]).await;
    world.store.lose(&Key::Catalogs);
    let transaction = world.begin("a").await;
    let current = transaction.base().unwrap().clone();
    let (_, written) = transaction.commit(current).await.unwrap();
    assert!(!written);
    for catalog in ["a", "b"] {
        assert!(
            publish::is_listed(&world.store, &name(catalog))
                .await
                .unwrap()
        );
    }
}

/// A removal at the same time takes the name that the publication has just added.
#[tokio::test]
async fn commit_adds_the_name_that_a_removal_took_meanwhile() {
    let world = World::new();
    let store = world.store.clone();
    world.at_put(Key::Current(name("a")), Moment::After, move || {
        store.lose(&Key::Catalogs);
        Answer::GoOn
    });
    world.publish("a", &["p1"]).await;
    world.is_sound().await;
}
