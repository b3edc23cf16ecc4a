//! Conformance suite: one check for each promise of the [`Store`] trait. The tests of every store
//! call [`conformance`]. A store that passes can replace any other.

mod bodies;
mod conditions;
mod listing;
mod racing;
mod reading;
mod staging;
mod timing;

pub use racing::count;
pub use reading::read_conformance;

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use model::{Key, Kind, Sha256};

use store::{
    Body, Condition, Fetched, Get, Object, ObjectInfo, ReadStore, Staged, Store, StoreError,
    StoreExt as _, Version,
};

/// Checks that some servers cannot pass. The default leaves out none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exceptions {
    /// Leaves out that writers and a client that has begun to read do not wait for each other.
    /// MinIO lets writers wait.
    pub held_readers: bool,
    /// Leaves out races of writers of a large object. A server that refuses it before it has read
    /// it, and cuts the connection, lets some of the writers fail.
    pub large_races: bool,
}

/// Runs the checks, each on an empty store that `make` returns. It needs a tokio runtime, with
/// several threads if possible, because some checks race.
///
/// # Panics
/// At the first promise that is not kept, with its name.
pub async fn conformance(make: impl AsyncFn() -> Arc<dyn Store>, without: Exceptions) {
    reading::all(&make).await;
    conditions::all(&make).await;
    staging::all(&make).await;
    listing::all(&make).await;
    bodies::all(&make, without).await;
    racing::all(&make, without).await;
    timing::all(&make).await;
}

/// Returns the mutable object of most checks.
pub fn current() -> Key {
    Key::Current("a".parse().expect("a name"))
}

/// Returns the immutable key of `bytes`. A store may refuse other bytes under it.
pub fn object(bytes: &[u8]) -> Key {
    Key::Object(Kind::Package, Sha256::of(bytes))
}

/// Returns an immutable key for each number, that of its bytes.
fn shard(number: u32) -> Key {
    object(&number.to_be_bytes())
}

async fn put_shard(store: &dyn Store, number: u32) {
    put(
        store,
        &shard(number),
        Bytes::copy_from_slice(&number.to_be_bytes()),
    )
    .await;
}

/// Returns a mutable key, and the immutable one of `bytes`: most promises hold for both.
fn both(bytes: &[u8]) -> [Key; 2] {
    [current(), object(bytes)]
}

/// Puts an object in any case.
///
/// # Panics
/// If the store fails.
pub async fn put(store: &dyn Store, key: &Key, bytes: impl Into<Bytes>) -> Version {
    let put = store.put(key, bytes.into(), Condition::Always).await;
    put.unwrap_or_else(|error| panic!("a put without a condition succeeds: {error:?}"))
}

/// Way to write an object. Both keep the same promises about conditions.
#[derive(Clone, Copy, Debug)]
enum Way {
    AtOnce,
    Staged,
}

const WAYS: [Way; 2] = [Way::AtOnce, Way::Staged];

async fn write(
    store: &dyn Store,
    way: Way,
    key: &Key,
    bytes: impl Into<Bytes>,
    condition: Condition,
) -> Result<Version, StoreError> {
    match way {
        Way::AtOnce => store.put(key, bytes.into(), condition).await,
        Way::Staged => {
            stage(store, [bytes.into()])
                .await
                .commit(key, condition)
                .await
        }
    }
}

/// Stages an object of these pieces.
async fn stage(store: &dyn Store, pieces: impl IntoIterator<Item = Bytes>) -> Box<dyn Staged> {
    let mut staged = store.stage().await.expect("an object can be staged");
    for piece in pieces {
        staged.write(piece).await.expect("a piece can be written");
    }
    staged
}

async fn content(store: &dyn Store, key: &Key) -> Bytes {
    let read = store.read_all(key, u64::MAX).await;
    read.unwrap_or_else(|error| panic!("{key} can be read: {error:?}"))
        .0
}

async fn get(store: &dyn ReadStore, key: &Key, get: Get) -> Object {
    match store.get(key, get).await {
        Ok(Fetched::Object(object)) => object,
        Ok(Fetched::NotModified) => panic!("{key} has changed, or was read without `unless`"),
        Err(error) => panic!("{key} can be read: {error:?}"),
    }
}

/// Returns a request for a part of an object.
fn ranged(range: Range<u64>) -> Get {
    Get {
        range: Some(range),
        unless: None,
    }
}

async fn is_unmodified(store: &dyn ReadStore, key: &Key, version: &Version) -> bool {
    let unless = Get {
        unless: Some(version.clone()),
        range: None,
    };
    matches!(store.get(key, unless).await, Ok(Fetched::NotModified))
}

async fn collect(body: Body) -> Bytes {
    let chunks: Vec<Bytes> = body
        .try_collect()
        .await
        .expect("a body can be read to its end");
    chunks.concat().into()
}

async fn head(store: &dyn ReadStore, key: &Key) -> ObjectInfo {
    let found = store.head(key).await.expect("the store can be asked");
    found.expect("there is one")
}

async fn is_missing(store: &dyn ReadStore, key: &Key) -> bool {
    matches!(store.head(key).await, Ok(None))
}

/// Returns bytes in which every misplaced, lost or repeated piece shows.
pub fn pattern(size: usize) -> Bytes {
    (0..size)
        .map(|at| ((at * 31 + at / 251) % 256) as u8)
        .collect()
}
