use std::{
    collections::{BTreeSet, HashSet},
    time::{Duration, SystemTime},
};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{CatalogName, Catalogs, Current, Key, ObjectKey, ObjectRef, Snapshot};
use store::{Listed, ObjectError, ReadError, Store, StoreExt, read_stored};

use super::{GcError, Retention, UnreadableState};

/// Number of pointers that are read at a time: each is one small request. One after the other, a thousand catalogs would
/// take minutes.
const POINTERS_IN_FLIGHT: usize = 32;

/// Number of Snapshots that are read at a time: each may have megabytes.
const SNAPSHOTS_IN_FLIGHT: usize = 8;

/// Keys that must stay: everything that a published Snapshot names, or an earlier one that is kept.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) catalogs: usize,
    pub(super) snapshots: usize,
    /// Damaged Snapshots of earlier publications, which mark nothing.
    pub(super) unreadable: Vec<UnreadableState>,
    keys: HashSet<ObjectKey>,
}

/// Result of reading one pointer or Snapshot.
enum Root<T> {
    Read(T),
    /// There is none, so it names nothing.
    Missing,
    /// Damaged, and nothing that is published needs it.
    Dispensable(UnreadableState),
    /// It might name anything.
    Blocking(UnreadableState),
}

/// A Snapshot that must stay, and its catalog for errors.
struct SnapshotRoot {
    catalog: CatalogName,
    object: ObjectRef,
    /// True if it is the published one. An earlier one that is gone names nothing.
    is_published: bool,
}

impl Marks {
    /// Marks from all pointers. `now` is the store's time.
    pub(super) async fn read(store: &dyn Store, retention: &Retention, now: SystemTime) -> Result<Self, GcError> {
        let mut marks = Self::default();
        let mut roots: Vec<SnapshotRoot> = Vec::new();
        // All are read before a run gives up, so that an operator gets the whole list at once.
        let mut blocking = Vec::new();
        for root in pointers(store).await? {
            match root {
                Root::Read((catalog, current)) => {
                    marks.catalogs += 1;
                    roots.extend(kept(&catalog, &current, retention, now));
                }
                Root::Missing => {}
                Root::Dispensable(state) | Root::Blocking(state) => blocking.push(state),
            }
        }
        // A content may be published by several catalogs. The published ones come first, since they must be readable.
        roots.sort_by_key(|root| (root.object, !root.is_published));
        roots.dedup_by_key(|root| root.object);
        let reads: Vec<_> = roots.into_iter().map(|root| read_root(store, root)).collect();
        let mut reads = stream::iter(reads).buffer_unordered(SNAPSHOTS_IN_FLIGHT);
        while let Some(root) = reads.try_next().await? {
            match root {
                Root::Read((object, snapshot)) => marks.mark(&object, &snapshot),
                Root::Missing => {}
                Root::Dispensable(state) => marks.unreadable.push(state),
                Root::Blocking(state) => blocking.push(state),
            }
        }
        blocking.sort();
        marks.unreadable.sort();
        match blocking.is_empty() {
            true => Ok(marks),
            false => Err(GcError::Unreadable(blocking)),
        }
    }

    fn mark(&mut self, object: &ObjectRef, snapshot: &Snapshot) {
        self.snapshots += 1;
        self.add(object);
        snapshot.objects().iter().for_each(|entry| self.add(&entry.object));
    }

    pub(super) fn add(&mut self, object: &ObjectRef) {
        self.keys.insert(ObjectKey::from(*object));
    }

    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.keys.contains(key)
    }
}

/// Reads all pointers: of the catalogs that are listed by name, and of those whose name is lost.
async fn pointers(store: &dyn Store) -> Result<Vec<Root<(CatalogName, Current)>>, GcError> {
    let listed: Vec<Listed> = store.list("catalogs/").try_collect().await?;
    let found = listed.into_iter().filter_map(|object| match object.key {
        Key::Current(name) => Some(name),
        _ => None,
    });
    let mut names: BTreeSet<CatalogName> = found.collect();
    // The pointers are what counts: a list of names that is damaged is no reason to stop.
    if let Ok(Some((catalogs, _))) = store.read_document::<Catalogs>(&Key::Catalogs).await {
        names.extend(catalogs.catalogs);
    }
    let reads: Vec<_> = names.into_iter().map(|name| read_pointer(store, name)).collect();
    let pointers = stream::iter(reads).buffer_unordered(POINTERS_IN_FLIGHT);
    pointers.try_collect().await
}

async fn read_pointer(store: &dyn Store, name: CatalogName) -> Result<Root<(CatalogName, Current)>, GcError> {
    let key = Key::Current(name.clone());
    let found = store.read_document::<Current>(&key).await;
    match found {
        // A name without a pointer is a catalog that was removed, or is about to be published for the first time.
        Ok(found) => Ok(found.map_or(Root::Missing, |(current, _)| Root::Read((name, current)))),
        Err(error @ ReadError::Store(_)) => Err(error.into()),
        Err(error) => Ok(Root::Blocking(UnreadableState::new(&name, &key, &error))),
    }
}

/// Returns the published Snapshot, the earlier ones that are kept, and those that a composition was made of. The age of an earlier one counts from its
/// replacement: the state of a catalog that changes for the first time in months must not vanish at once.
fn kept(catalog: &CatalogName, current: &Current, retention: &Retention, now: SystemTime) -> Vec<SnapshotRoot> {
    let root = |object, is_published| SnapshotRoot {
        catalog: catalog.clone(),
        object,
        is_published,
    };
    let mut roots = vec![root(current.snapshot, true)];
    let mut replaced = current.published_at;
    for (at, previous) in current.previous.iter().enumerate() {
        // A time in the future counts as now.
        let age: Duration = now.duration_since(replaced).unwrap_or_default();
        if age < retention.grace || at < retention.generations && age < retention.max_age {
            roots.push(root(previous.snapshot, false));
        }
        replaced = previous.published_at;
    }
    // States that a composition was made of, so that another selection of them finds them. A copy of the composition alone does
    // not have them.
    roots.extend(current.source.inputs.iter().map(|input| root(input.snapshot, false)));
    roots
}

async fn read_root(store: &dyn Store, root: SnapshotRoot) -> Result<Root<(ObjectRef, Snapshot)>, GcError> {
    let SnapshotRoot {
        catalog,
        object,
        is_published,
    } = root;
    let error = match read_stored::<Snapshot>(store, &object.digest).await {
        Ok(snapshot) => return Ok(Root::Read((object, snapshot))),
        Err(error) if error.is_not_found() && !is_published => return Ok(Root::Missing),
        // A store that fails has damaged nothing: the next run tries again.
        Err(ObjectError::Read(ReadError::Store(error))) if !error.is_not_found() => return Err(error.into()),
        Err(error) => error,
    };
    let state = UnreadableState::new(&catalog, &object.key(), &error);
    // An earlier publication whose Snapshot has other bytes than its name says can be neither served nor rolled back to. Its
    // objects are safe to lose: a Snapshot that is repaired later is read by the second marking, or its put is deferred; and
    // a rollback holds each object that it finds against `gc.json`. Bytes that fit the name and cannot be read are those of
    // a newer program, which can roll back to it.
    match error {
        ObjectError::Damaged { .. } if !is_published => {
            tracing::warn!(%catalog, key = state.key, error = state.error, "an earlier snapshot is damaged and keeps nothing");
            Ok(Root::Dispensable(state))
        }
        _ => Ok(Root::Blocking(state)),
    }
}
