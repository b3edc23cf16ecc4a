//! Looks for missing and truncated objects of a published state: a damaged one is otherwise only
//! noticed when the source changes.

use std::collections::BTreeMap;

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{Key, ObjectRef, Snapshot};

use crate::{Store, StoreError};

/// Number of objects that are looked at, not read, at a time: each is one small request.
const STATS_IN_FLIGHT: usize = 32;

/// Looks at every object that a Snapshot names without reading it. Returns the problem of each that
/// cannot be served. It finds lost and truncated objects, not flipped bits, for one HEAD each.
///
/// # Errors
/// As [`ReadStore::head`](crate::ReadStore::head).
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
