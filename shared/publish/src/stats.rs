//! Looks for missing and truncated objects of a published state: a damaged one is otherwise only noticed when the source changes.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{CatalogName, Key, ObjectRef, Snapshot};
use serde::Serialize;
use store::{Store, StoreError};

use crate::{Env, PollError, PublishError, Transaction};

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

/// Object of a Snapshot that is missing or has another size than recorded.
#[derive(Debug)]
pub(crate) struct UnservableObject {
    pub(crate) key: Key,
    recorded: u64,
    /// `None` if it is missing.
    found: Option<u64>,
}

impl fmt::Display for UnservableObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, recorded, found } = self;
        match found {
            Some(found) => write!(f, "{key}, which has {found} bytes, but {recorded} are recorded"),
            None => write!(f, "{key}, which is missing"),
        }
    }
}

/// Looks at every object that a Snapshot names without reading it. Returns those that cannot be served, in the order of
/// their keys. It finds lost and truncated objects, not flipped bits, for one HEAD each.
pub(crate) async fn find_unservable(
    store: &dyn Store,
    snapshot: &Snapshot,
) -> Result<Vec<UnservableObject>, StoreError> {
    let objects = snapshot.objects().into_iter();
    let stats: Vec<_> = objects.map(|entry| stat(store, entry.object)).collect();
    let mut found: Vec<UnservableObject> = stream::iter(stats)
        .buffer_unordered(STATS_IN_FLIGHT)
        .try_filter_map(async |object| Ok(object))
        .try_collect()
        .await?;
    found.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(found)
}

async fn stat(store: &dyn Store, object: ObjectRef) -> Result<Option<UnservableObject>, StoreError> {
    let (key, recorded) = (object.key(), object.digest.size);
    let found = match store.head(&key).await {
        Ok(info) if info.size == recorded => return Ok(None),
        Ok(info) => Some(info.size),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error),
    };
    Ok(Some(UnservableObject { key, recorded, found }))
}

/// Time between two looks at the stored objects of an unchanged catalog. Each look is one small request per object: 300
/// catalogs of 300 packages cost a dollar a day on S3.
const CHECK_INTERVAL: Duration = Duration::from_secs(3600);

/// Times since boot of the last looks of this process at the stored objects of each catalog.
pub(crate) struct StoredChecks {
    env: Env,
    last: Mutex<HashMap<CatalogName, Duration>>,
}

impl StoredChecks {
    pub(crate) fn new(env: &Env) -> Self {
        Self {
            env: env.clone(),
            last: Mutex::default(),
        }
    }

    /// Returns true if this process has not looked at the objects of a catalog for an hour.
    pub(crate) fn is_due(&self, catalog: &CatalogName) -> bool {
        let now = (self.env.since_boot)();
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.get(catalog);
        last.is_none_or(|last| now.saturating_sub(*last) >= CHECK_INTERVAL)
    }

    /// Notes that the objects of a catalog were all there just now.
    pub(crate) fn note(&self, catalog: &CatalogName) {
        let now = (self.env.since_boot)();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.insert(catalog.clone(), now);
    }
}

/// Fails if an object of the published state is missing or has another size than recorded.
pub(crate) async fn check_stored(store: &dyn Store, transaction: &Transaction) -> Result<(), PollError> {
    let damaged = match transaction.base_snapshot().await? {
        Some(snapshot) => {
            let found = find_unservable(store, snapshot).await?;
            found.first().map(|object| object.key.to_string())
        }
        // The snapshot itself.
        None => Some(
            transaction
                .base()
                .map(|base| base.snapshot.key().to_string())
                .unwrap_or_default(),
        ),
    };
    match damaged {
        Some(key) => Err(PublishError::Damaged(key).into()),
        None => Ok(()),
    }
}
