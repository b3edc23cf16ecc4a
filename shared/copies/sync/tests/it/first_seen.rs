//! Days on which versions were first seen, over all that brings a state back or to another store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use model::{Facts, Outcome, SeenPackage};
use olm::Day;
use publish::ValidationMode;
use store::Store;
use storekit::MemoryStore;
use testkit::first_published_at;
use upkeep::RollbackOptions;

use crate::archives::{export, import, packed};
use crate::kit::{copy, mirror, name, options, poll_at, put_raw, snapshot};

fn time_of(day: u32) -> SystemTime {
    first_published_at() + day * Duration::from_hours(24)
}

/// Publishes so many versions of one package on a day.
async fn publish_on(store: &Arc<dyn Store>, day: u32, versions: usize) {
    let packages = [("queue", versions)];
    let time = time_of(day);
    poll_at(store, &name(), &packages, ValidationMode::Off, time).await;
}

/// Returns the number of the day of each version, and that on which the store began to record days.
async fn days(store: &Arc<dyn Store>) -> BTreeMap<String, u64> {
    let seen = snapshot(store).await.facts[SeenPackage::KIND];
    let seen: Facts<SeenPackage> = store::read_stored(&**store, &seen).await.unwrap();
    let number = |day: &String| {
        let day: Day = day.parse().unwrap();
        day.days_after(Day::from(first_published_at()))
    };
    let bundles = seen.packages["queue"].bundles.iter();
    let mut days: BTreeMap<String, u64> = bundles
        .map(|(name, day)| (name.replace("queue.", ""), number(day)))
        .collect();
    days.insert("since".to_owned(), number(&seen.packages[""].since));
    days
}

fn expected(versions: &[u64], since: u64) -> BTreeMap<String, u64> {
    let names = (0..).map(|version: usize| format!("v{version}"));
    let mut days: BTreeMap<String, u64> = names.zip(versions.iter().copied()).collect();
    days.insert("since".to_owned(), since);
    days
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_keeps_the_days_of_what_comes_back() {
    let (_, store) = mirror(&[]).await;
    publish_on(&store, 0, 1).await;
    publish_on(&store, 3, 2).await;
    let rolled = upkeep::rollback(&store, &name(), &RollbackOptions::default()).await;
    assert_eq!(rolled.outcome, Outcome::Published, "{:?}", rolled.error);
    assert_eq!(days(&store).await, expected(&[0], 0));
    publish_on(&store, 7, 3).await;
    assert_eq!(days(&store).await, expected(&[0, 3, 7], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_have_the_days_of_their_origin_and_go_on_from_them() {
    let (_, from) = mirror(&[]).await;
    publish_on(&from, 0, 1).await;
    publish_on(&from, 3, 2).await;
    let (_, synced) = mirror(&[]).await;
    copy(&from, &synced, options(true)).await;
    let (_, imported) = mirror(&[]).await;
    let volumes = export(&from, packed(false)).await;
    import(&volumes, &imported).await.unwrap();
    for copy in [synced, imported] {
        assert_eq!(days(&copy).await, expected(&[0, 3], 0));
        publish_on(&copy, 9, 3).await;
        assert_eq!(days(&copy).await, expected(&[0, 3, 9], 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_mirrors_each_have_their_own_days() {
    let (_, early) = mirror(&[]).await;
    publish_on(&early, 0, 1).await;
    publish_on(&early, 1, 2).await;
    let (_, late) = mirror(&[]).await;
    publish_on(&late, 5, 2).await;
    assert_eq!(days(&early).await, expected(&[0, 1], 0));
    assert_eq!(days(&late).await, expected(&[5, 5], 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_store_sees_what_it_lost_on_the_day_of_its_next_poll() {
    let (memory, store) = mirror(&[]).await;
    publish_on(&store, 0, 1).await;
    publish_on(&store, 3, 2).await;
    let backup = memory.objects();
    publish_on(&store, 5, 3).await;
    assert_eq!(days(&store).await, expected(&[0, 3, 5], 0));
    let restored: Arc<dyn Store> = Arc::new(MemoryStore::new());
    for (key, bytes) in backup {
        put_raw(&restored, &key, bytes.to_vec()).await;
    }
    assert_eq!(days(&restored).await, expected(&[0, 3], 0));
    // A later day holds a version back for longer, never for a shorter time.
    publish_on(&restored, 9, 3).await;
    assert_eq!(days(&restored).await, expected(&[0, 3, 9], 0));
}
