//! What every store has to do, one check per promise of the [`Store`] trait. A store's own tests call [`conformance`];
//! whatever passes can stand in for any other store.

mod bodies;
mod conditions;
mod large;
mod listing;
mod racing;
mod reading;
mod staging;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use layout::{Form, Key, Sha256};

use crate::{Body, Condition, Fetched, Get, Object, Store, StoreError, StoreExt as _, Version};

/// Runs every check, each on an empty store of its own that `make` gives. It needs a tokio runtime, best one with
/// several threads, since some checks race.
///
/// # Panics
/// At the first promise that is not kept, with words on which.
pub async fn conformance(make: impl AsyncFn() -> Arc<dyn Store>) {
    reading::all(&make).await;
    conditions::all(&make).await;
    staging::all(&make).await;
    listing::all(&make).await;
    bodies::all(&make).await;
    racing::all(&make).await;
}

/// What holds while somebody has begun to read and does not go on: that writers need not wait for him, nor he for them.
/// Every store of this project keeps it as far as its server does; MinIO lets writers wait.
///
/// # Panics
/// As [`conformance`].
pub async fn held_readers(make: impl AsyncFn() -> Arc<dyn Store>) {
    bodies::held(&make).await;
}

/// What is too slow for a build without optimisation: the same promises for objects of so many bytes that a store may
/// write them in another way.
///
/// # Panics
/// As [`conformance`].
pub async fn large(make: impl AsyncFn() -> Arc<dyn Store>) {
    large::all(&make).await;
}

/// The mutable object of most checks.
fn current() -> Key {
    Key::Current("a".parse().expect("a name"))
}

/// As many immutable objects as a check needs.
fn shard(number: u32) -> Key {
    Key::Shard(Sha256::of(&number.to_be_bytes()))
}

fn whole(form: Form) -> Key {
    Key::All("a".parse().expect("a name"), Sha256::of(b"content"), form)
}

/// One key of each kind of life: what holds for objects holds for both.
fn both() -> [Key; 2] {
    [current(), shard(0)]
}

async fn put(store: &dyn Store, key: &Key, bytes: impl Into<Bytes>) -> Version {
    let put = store.put(key, bytes.into(), Condition::Always).await;
    put.unwrap_or_else(|error| panic!("a put without a condition succeeds: {error:?}"))
}

async fn content(store: &dyn Store, key: &Key) -> Bytes {
    let read = store.read_all(key, u64::MAX).await;
    read.unwrap_or_else(|error| panic!("{key} can be read: {error:?}")).0
}

async fn get(store: &dyn Store, key: &Key, get: Get) -> Object {
    match store.get(key, get).await {
        Ok(Fetched::Object(object)) => object,
        Ok(Fetched::NotModified) => panic!("{key} has changed, or was read without `unless`"),
        Err(error) => panic!("{key} can be read: {error:?}"),
    }
}

async fn is_unmodified(store: &dyn Store, key: &Key, version: &Version) -> bool {
    let unless = Get {
        unless: Some(version.clone()),
        range: None,
    };
    matches!(store.get(key, unless).await, Ok(Fetched::NotModified))
}

async fn collect(body: Body) -> Bytes {
    let chunks: Vec<Bytes> = body.try_collect().await.expect("a body can be read to its end");
    chunks.concat().into()
}

async fn is_missing(store: &dyn Store, key: &Key) -> bool {
    matches!(store.head(key).await, Err(StoreError::NotFound { .. }))
}

/// Bytes in which every misplaced, lost or repeated piece shows.
fn pattern(size: usize) -> Bytes {
    (0..size).map(|at| ((at * 31 + at / 251) % 256) as u8).collect()
}
