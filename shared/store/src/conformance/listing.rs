use std::{sync::Arc, time::Duration};

use futures_util::TryStreamExt as _;
use layout::{Form, Key};

use super::{current, put, shard, whole};
use crate::{Listed, Store};

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    an_empty_store_lists_nothing(&*make().await).await;
    prefixes_are_those_of_the_path(&*make().await).await;
    a_listing_knows_size_and_time(&*make().await).await;
    a_deleted_object_is_not_listed(&*make().await).await;
    many_objects_are_all_listed(&*make().await).await;
}

async fn list(store: &dyn Store, prefix: &str) -> Vec<Listed> {
    let mut listed: Vec<_> = store.list(prefix).try_collect().await.expect("a store can be listed");
    listed.sort_by_key(|listed| listed.key.clone());
    listed
}

async fn keys(store: &dyn Store, prefix: &str) -> Vec<Key> {
    list(store, prefix).await.into_iter().map(|listed| listed.key).collect()
}

async fn an_empty_store_lists_nothing(store: &dyn Store) {
    for prefix in ["", "catalogs/", "packages/sha256/"] {
        assert!(keys(store, prefix).await.is_empty(), "{prefix:?}");
    }
}

async fn prefixes_are_those_of_the_path(store: &dyn Store) {
    let name = |name: &str| name.parse().expect("a name");
    let mut all = vec![
        Key::Catalogs,
        current(),
        Key::Status(name("a")),
        Key::Layers(name("a")),
        Key::Current(name("ab")),
        Key::Current(name("b")),
        shard(1),
        shard(2),
    ];
    all.extend(Form::ALL.map(whole));
    for key in &all {
        put(store, key, "x").await;
    }
    all.sort();
    let path = |key: &Key| key.to_string();
    let (hash_folder, _) = whole(Form::Gzip)
        .to_string()
        .rsplit_once('/')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .expect("a folder");
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
        &hash_folder,
        &format!("{hash_folder}/all.json"),
        "packages/sha256/",
        &path(&shard(1))[.."packages/sha256/".len() + 3],
        "nothing",
        "/",
        "catalogs/../",
        ".",
    ] {
        let expected: Vec<Key> = all
            .iter()
            .filter(|key| path(key).starts_with(prefix))
            .cloned()
            .collect();
        assert_eq!(
            keys(store, prefix).await,
            expected,
            "the keys that start with {prefix:?}"
        );
    }
}

async fn a_listing_knows_size_and_time(store: &dyn Store) {
    put(store, &current(), "abc").await;
    let head = store.head(&current()).await.expect("there is one");
    let listed = list(store, "").await;
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].key, listed[0].size), (&current(), 3));
    // Some stores list finer times than they send with an object.
    let [early, late] = if head.modified < listed[0].modified {
        [head.modified, listed[0].modified]
    } else {
        [listed[0].modified, head.modified]
    };
    let apart = late.duration_since(early).expect("in order");
    assert!(
        apart < Duration::from_secs(1),
        "head and list agree on the time: {apart:?}"
    );
}

async fn a_deleted_object_is_not_listed(store: &dyn Store) {
    put(store, &current(), "x").await;
    put(store, &shard(1), "x").await;
    store.delete(&current()).await.expect("an object can be deleted");
    assert_eq!(keys(store, "").await, [shard(1)]);
}

/// More than one page of an S3 listing would be too slow to make here; a store with pages tests them itself.
async fn many_objects_are_all_listed(store: &dyn Store) {
    let mut all: Vec<Key> = (0..120).map(shard).collect();
    for key in &all {
        put(store, key, "x").await;
    }
    all.sort();
    assert_eq!(keys(store, "packages/").await, all);
}
