use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, stream};
use model::{CatalogName, Catalogs, Current, Key, ObjectKey, ObjectRef, Snapshot};
use store::{ReadError, Store, StoreExt, read_stored};

use super::error::GcError;
use super::options::Retention;
use super::report::UnreadableState;

/// Number of pointers that are read at a time: each is one small request. One after the other, a
/// thousand catalogs would take minutes.
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
    pub(super) keys: HashSet<ObjectKey>,
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
    pub(super) async fn read(
        store: &dyn Store,
        retention: &Retention,
        now: SystemTime,
    ) -> Result<Self, GcError> {
        let mut marks = Self::default();
        let mut roots: Vec<SnapshotRoot> = Vec::new();
        // All are read before a run gives up, so that an operator gets the whole list at once.
        let mut blocking = Vec::new();
        let mut names = publish::names_of_pointers(store).await?.catalogs;
        // The pointers are what counts: a list of names that is damaged is no reason to stop.
        if let Ok(Some((listed, _))) = store.read_document::<Catalogs>(&Key::Catalogs).await {
            names.extend(listed.catalogs);
        }
        let reads = names.into_iter().map(|catalog| async move {
            let key = Key::Current(catalog.clone());
            let read = store.read_document::<Current>(&key).await;
            (catalog, key, read)
        });
        let mut reads = stream::iter(reads).buffer_unordered(POINTERS_IN_FLIGHT);
        while let Some((catalog, key, read)) = reads.next().await {
            match read {
                Ok(Some((current, _))) => {
                    marks.catalogs += 1;
                    roots.extend(kept(&catalog, &current, retention, now));
                }
                // A name without a pointer is a catalog that was removed, or is about to be
                // published for the first time.
                Ok(None) => {}
                Err(error @ ReadError::Store(_)) => return Err(error.into()),
                Err(error) => blocking.push(UnreadableState::new(&catalog, &key, &error)),
            }
        }
        blocking.extend(marks.read_snapshots(store, roots).await?);
        blocking.sort();
        marks.unreadable.sort();
        match blocking.is_empty() {
            true => Ok(marks),
            false => Err(GcError::Unreadable(blocking)),
        }
    }

    /// Marks from Snapshots. Returns those that cannot be read and might name anything.
    async fn read_snapshots(
        &mut self,
        store: &dyn Store,
        mut roots: Vec<SnapshotRoot>,
    ) -> Result<Vec<UnreadableState>, GcError> {
        // A content may be published by several catalogs. The published ones come first, since they
        // must be readable.
        roots.sort_by_key(|root| (root.object, !root.is_published));
        roots.dedup_by_key(|root| root.object);
        let reads = roots.into_iter().map(|root| async move {
            let read = read_stored::<Snapshot>(store, &root.object.digest).await;
            (root, read)
        });
        let mut reads = stream::iter(reads).buffer_unordered(SNAPSHOTS_IN_FLIGHT);
        let mut blocking = Vec::new();
        while let Some((root, read)) = reads.next().await {
            let error = match read {
                Ok(snapshot) => {
                    self.snapshots += 1;
                    let objects = snapshot.objects().into_iter().map(|entry| entry.object);
                    self.keys
                        .extend(objects.chain([root.object]).map(ObjectKey::from));
                    continue;
                }
                Err(error) if error.is_not_found() && !root.is_published => continue,
                // A store that fails has damaged nothing: the next run tries again.
                Err(ReadError::Store(error)) if !error.is_not_found() => return Err(error.into()),
                Err(error) => error,
            };
            let state = UnreadableState::new(&root.catalog, &root.object.key(), &error);
            // An earlier publication whose Snapshot has other bytes than its name says can be
            // neither served nor rolled back to. Its objects are safe to lose: a Snapshot that is
            // repaired later is read by the second marking, or its put is deferred; and a rollback
            // holds each object that it finds against `gc.json`. Bytes that fit the name and cannot
            // be read are those of a newer program, which can roll back to it.
            if matches!(error, ReadError::Damaged { .. }) && !root.is_published {
                tracing::warn!(catalog = %root.catalog, key = state.key, error = state.error, "an earlier snapshot is damaged and keeps nothing");
                self.unreadable.push(state);
            } else {
                blocking.push(state);
            }
        }
        Ok(blocking)
    }
}

/// Returns the published Snapshot, the earlier ones that are kept, and those of other catalogs that a
/// composition or a ring needs. The age of an earlier one counts from its replacement: the state of a catalog that
/// changes for the first time in months must not vanish at once.
fn kept(
    catalog: &CatalogName,
    current: &Current,
    retention: &Retention,
    now: SystemTime,
) -> Vec<SnapshotRoot> {
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
    // States that a composition was made of, so that another selection of them finds them, and those
    // that a ring needs. A copy of the catalog alone does not have them.
    let kept = current.source.kept_states();
    roots.extend(kept.map(|(_, snapshot)| root(snapshot, false)));
    roots
}
