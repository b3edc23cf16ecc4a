use std::{sync::Arc, time::Duration};

use futures_util::TryStreamExt as _;
use model::{Encoding, Key, Kind, Sha256};

use super::{current, head, put, put_shard, shard};
use store::{Listed, Store};

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    list_follows_puts_and_deletes(&*make().await).await;
    list_by_prefix_returns_matching_keys(&*make().await).await;
    list_has_size_and_time(&*make().await).await;
    list_of_many_objects_is_complete(&*make().await).await;
}

async fn list(store: &dyn Store, prefix: &str) -> Vec<Listed> {
    let mut listed: Vec<_> = store
        .list(prefix)
        .try_collect()
        .await
        .expect("a store can be listed");
    listed.sort_by_key(|listed| listed.key.clone());
    listed
}

async fn keys(store: &dyn Store, prefix: &str) -> Vec<Key> {
    list(store, prefix)
        .await
        .into_iter()
        .map(|listed| listed.key)
        .collect()
}

async fn list_follows_puts_and_deletes(store: &dyn Store) {
    for prefix in ["", "catalogs/", "packages/sha256/"] {
        assert!(keys(store, prefix).await.is_empty(), "{prefix:?}");
    }
    put(store, &current(), "x").await;
    put_shard(store, 1).await;
    store
        .delete(&current())
        .await
        .expect("an object can be deleted");
    assert_eq!(keys(store, "").await, [shard(1)]);
}

async fn list_by_prefix_returns_matching_keys(store: &dyn Store) {
    let name = |name: &str| name.parse().expect("a name");
    let mut all = vec![
        Key::Catalogs,
        current(),
        Key::Status(name("a")),
        Key::Notified(name("a")),
        Key::Current(name("ab")),
        Key::Current(name("b")),
    ];
    let one = Sha256::of(b"x");
    all.push(Key::Object(Kind::Package, one));
    all.extend(Encoding::ALL.map(|encoding| Key::Object(Kind::All(encoding), one)));
    for key in &all {
        put(store, key, "x").await;
    }
    all.sort();
    let path = |key: &Key| key.to_string();
    for prefix in [
        "",
        "c",
        "catalogs",
        "catalogs.",
        "catalogs/",
        "catalogs/a",
        "catalogs/a/",
        "catalogs/a/current.json",
        "catalogs/a/current.json.",
        "catalogs/a/c",
        "all/sha256",
        &format!("all/sha256/{one}.json"),
        &format!("all/sha256/{one}.json.zst"),
        "packages/sha256/",
        &path(&Key::Object(Kind::Package, one))[.."packages/sha256/".len() + 3],
        "nothing",
    ] {
        let mut expected = all.clone();
        expected.retain(|key| path(key).starts_with(prefix));
        assert_eq!(keys(store, prefix).await, expected, "{prefix:?}");
    }
}

async fn list_has_size_and_time(store: &dyn Store) {
    put(store, &current(), "abc").await;
    let head = head(store, &current()).await;
    let listed = list(store, "").await;
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].key, listed[0].size), (&current(), 3));
    // Some stores list finer times than they send with an object.
    let mut times = [head.modified, listed[0].modified];
    times.sort();
    let apart = times[1].duration_since(times[0]).expect("in order");
    assert!(
        apart < Duration::from_secs(1),
        "head and list differ by {apart:?}"
    );
}

/// Fewer than a page of an S3 listing: more would be slow to make here. A store with pages tests
/// them itself.
async fn list_of_many_objects_is_complete(store: &dyn Store) {
    let mut all: Vec<Key> = (0..120).map(shard).collect();
    for number in 0..120 {
        put_shard(store, number).await;
    }
    all.sort();
    assert_eq!(keys(store, "packages/").await, all);
}
