use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{both, current, head, put};
use store::Store;

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    stat_and_head_agree(&*make().await).await;
    dates_do_not_go_back(&*make().await).await;
    age_starts_with_each_write(&*make().await).await;
}

async fn stat_and_head_agree(store: &dyn Store) {
    for key in both(b"abc") {
        let stat = store
            .stat(&key)
            .await
            .expect("a missing object is no error");
        assert_eq!((stat.object.clone(), stat.age()), (None, None));
        put(store, &key, "abc").await;
        let stat = store.stat(&key).await.expect("a store has a clock");
        assert_eq!(stat.object, Some(head(store, &key).await));
        assert!(stat.age() < Some(Duration::from_secs(60)), "{stat:?}");
    }
}

async fn dates_do_not_go_back(store: &dyn Store) {
    let mut last = (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
    for round in 0..5 {
        put(store, &current(), format!("{round}")).await;
        let stat = store.stat(&current()).await.expect("a store has a clock");
        let now = (stat.date, stat.object.expect("it was written").modified);
        assert!(last.0 <= now.0 && last.1 <= now.1, "{last:?}, {now:?}");
        // A server may take its date from a clock that it reads once a second.
        let latest = now.0 + Duration::from_secs(1);
        assert!(now.1 <= latest, "an object from the future: {now:?}");
        last = now;
    }
}

async fn age_starts_with_each_write(store: &dyn Store) {
    put(store, &current(), "first").await;
    let first = store.stat(&current()).await.expect("a store has a clock");
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let later = store.stat(&current()).await.expect("a store has a clock");
    assert!(
        first.age() < later.age(),
        "an object gets older: {first:?}, {later:?}"
    );
    put(store, &current(), "second").await;
    let second = store.stat(&current()).await.expect("a store has a clock");
    let modified = |stat: &store::Stat| stat.object.as_ref().map(|object| object.modified);
    assert!(
        modified(&later) < modified(&second),
        "{later:?}, {second:?}"
    );
}
