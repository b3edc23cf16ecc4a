//! Looks for missing and truncated objects of a published state: a damaged one is otherwise only
//! noticed when the source changes.

use std::{collections::BTreeMap, ops::AddAssign};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{Key, ObjectRef, Snapshot};
use serde::Serialize;
use store::{Store, StoreError};

/// Number of objects that are looked at, not read, at a time: each is one small request.
const STATS_IN_FLIGHT: usize = 32;

/// Number and total size of some objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ObjectStats {
    /// Number of objects, each counted once.
    pub objects: u64,
    /// Total size of their stored bytes.
    pub bytes: u64,
}

impl ObjectStats {
    /// Adds one object of `bytes` stored bytes.
    pub const fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

impl AddAssign for ObjectStats {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

/// Looks at every object that a Snapshot names without reading it. Returns the problem of each that
/// cannot be served. It finds lost and truncated objects, not flipped bits, for one HEAD each.
///
/// # Errors
/// As [`ReadStore::head`](store::ReadStore::head).
pub async fn find_unservable(
    store: &dyn Store,
    snapshot: &Snapshot,
) -> Result<BTreeMap<Key, String>, StoreError> {
    let objects = snapshot.objects().into_iter();
    let stats = objects.map(|entry| stat(store, entry.object));
    let found = stream::iter(stats).buffer_unordered(STATS_IN_FLIGHT);
    found
        .try_filter_map(async |object| Ok(object))
        .try_collect()
        .await
}

async fn stat(store: &dyn Store, object: ObjectRef) -> Result<Option<(Key, String)>, StoreError> {
    let key = object.key();
    let recorded = object.digest.size;
    let problem = match store.head(&key).await? {
        Some(info) if info.size == recorded => return Ok(None),
        Some(info) => format!("which has {} bytes, but {recorded} are recorded", info.size),
        None => "which is missing".to_owned(),
    };
    Ok(Some((key, problem)))
}
