//! `catalogs.json`: the names of all catalogs, kept right by every publication.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{CatalogName, Catalogs, DocumentError, Key};
use store::{Listed, ReadError, Store, StoreError, StoreExt, Version};

/// Number of catalogs whose pointers are looked at at a time: each is one small request.
const HEADS_IN_FLIGHT: usize = 32;

/// Returns the names of all catalogs that have a pointer. If `catalogs.json` is lost or damaged,
/// the names come from a listing of the pointers. A name without a pointer, which a removal or a
/// first publication that was stopped leaves, is logged.
///
/// # Errors
/// As [`StoreExt::read_document`] for a document of another format version, and as [`Store::list`].
pub async fn catalog_names(store: &dyn Store) -> Result<BTreeSet<CatalogName>, ReadError> {
    let names = NameList::read(store).await?.names.catalogs;
    let stale = without_pointer(store, &names).await?;
    for catalog in &stale {
        tracing::warn!(%catalog, "catalogs.json has a name without a catalog: gc removes it, or rm");
    }
    Ok(&names - &stale)
}

async fn without_pointer(
    store: &dyn Store,
    names: &BTreeSet<CatalogName>,
) -> Result<BTreeSet<CatalogName>, ReadError> {
    let looks = names.iter().map(async |name| {
        let pointer = store.head(&Key::Current(name.clone())).await?;
        Ok::<_, ReadError>(pointer.is_none().then(|| name.clone()))
    });
    let looks: Vec<_> = looks.collect();
    let found = stream::iter(looks).buffer_unordered(HEADS_IN_FLIGHT);
    found
        .try_filter_map(async |name| Ok(name))
        .try_collect()
        .await
}

/// Removes the names without a pointer from a `catalogs.json` that has not changed for `age_min`. A
/// first publication writes the document anew before its pointer, and its commit lands within two
/// hours of that, so no publication needs such a name then.
///
/// # Errors
/// [`ReadError::Store`]. A document that cannot be read is left to the next publication.
pub async fn drop_stale_names(store: &dyn Store, age_min: Duration) -> Result<(), ReadError> {
    let Ok(Some((mut names, version))) = store.read_document::<Catalogs>(&Key::Catalogs).await
    else {
        return Ok(());
    };
    let stale = without_pointer(store, &names.catalogs).await?;
    if stale.is_empty() || store.stat(&Key::Catalogs).await?.age().unwrap_or_default() < age_min {
        return Ok(());
    }
    // Looked at again: a commit may have landed before the time was read.
    for name in without_pointer(store, &stale).await? {
        tracing::info!(catalog = %name, "removed a name without a catalog");
        names.remove(&name);
    }
    // After a lost race the next round looks again.
    store
        .swap_document(&Key::Catalogs, &names, Some(version))
        .await?;
    Ok(())
}

/// Adds the name of a catalog to `catalogs.json`, and makes a lost or damaged document again from
/// the pointers. With `anew` the document is written in any case, as before a first pointer: the
/// name is not stale then. Returns true if it was written.
///
/// # Errors
/// As [`catalog_names`] and [`Store::put`].
pub(crate) async fn add_name(
    store: &dyn Store,
    name: &CatalogName,
    anew: bool,
) -> Result<bool, ReadError> {
    // Every lost race means that another writer changed the names, so the loop ends.
    loop {
        let mut found = NameList::read(store).await?;
        let is_added = found.names.add(name);
        let catalogs = found.names.catalogs.len();
        let is_restored = found.is_restored;
        if anew && !is_added {
            found.names.serial = found.names.serial.saturating_add(1);
        } else if !is_added && !is_restored {
            return Ok(false);
        }
        if found.write(store).await? {
            if is_restored && catalogs > 1 {
                tracing::warn!(catalogs, "restored catalogs.json from the pointers");
            }
            return Ok(true);
        }
    }
}

/// Adds the name of a catalog that has a pointer, as [`add_name`] does. After its first pointer
/// `anew` makes sure that a removal which has read the names before, and writes them late, loses
/// its compare-and-swap.
///
/// # Errors
/// As [`add_name`].
pub(crate) async fn restore_name(
    store: &dyn Store,
    name: &CatalogName,
    anew: bool,
) -> Result<(), ReadError> {
    let is_written = add_name(store, name, anew).await?;
    if is_written {
        // The pointer may have been removed since it was read or written, and its name before this
        // added it again.
        remove_name(store, name).await?;
    }
    Ok(())
}

/// Removes the name of a catalog that has no pointer from `catalogs.json`. Returns true if it was
/// there.
async fn remove_name(store: &dyn Store, name: &CatalogName) -> Result<bool, ReadError> {
    loop {
        let mut found = NameList::read(store).await?;
        // Looked at after the names were read: a first publication writes its pointer, then the
        // names, so that either this sees the pointer or the compare-and-swap fails. The process
        // may also have been suspended for hours before.
        if store.head(&Key::Current(name.clone())).await?.is_some() || !found.names.remove(name) {
            return Ok(false);
        }
        if found.write(store).await? {
            return Ok(true);
        }
    }
}

/// Returns true if `catalogs.json` is there and has a name.
///
/// # Errors
/// As [`catalog_names`].
pub async fn is_listed(store: &dyn Store, name: &CatalogName) -> Result<bool, ReadError> {
    let found = NameList::read(store).await?;
    Ok(!found.is_restored && found.names.catalogs.contains(name))
}

struct NameList {
    names: Catalogs,
    version: Option<Version>,
    /// True if the names come from a listing.
    is_restored: bool,
}

impl NameList {
    async fn read(store: &dyn Store) -> Result<Self, ReadError> {
        let (names, version) = match store.read_document(&Key::Catalogs).await {
            Ok(found) => found.unzip(),
            // A document of a newer or older program is not damaged: it is refused.
            Err(ReadError::Document {
                source: DocumentError::Malformed { .. },
                ..
            }) => (
                None,
                store.head(&Key::Catalogs).await?.map(|info| info.version),
            ),
            Err(error) => return Err(error),
        };
        let is_restored = names.is_none();
        Ok(Self {
            names: match names {
                Some(names) => names,
                None => names_of_pointers(store).await?,
            },
            version,
            is_restored,
        })
    }

    /// Writes the names. Returns false if another writer was faster.
    async fn write(self, store: &dyn Store) -> Result<bool, ReadError> {
        let written = store
            .swap_document(&Key::Catalogs, &self.names, self.version)
            .await?;
        Ok(written.is_some())
    }
}

/// Makes the document from a listing of the pointers.
///
/// # Errors
/// As [`Store::list`].
pub async fn names_of_pointers(store: &dyn Store) -> Result<Catalogs, StoreError> {
    let listed: Vec<Listed> = store.list("catalogs/").try_collect().await?;
    let newest = listed.iter().map(|object| object.modified).max();
    let names = listed.into_iter().filter_map(|object| match object.key {
        Key::Current(name) => Some(name),
        _ => None,
    });
    let mut catalogs = Catalogs::from_iter(names);
    // The lost serial is not known. The store's time in seconds is larger than any that was
    // counted, so that an old state never comes back under the same bytes.
    if !catalogs.catalogs.is_empty() {
        let since = newest.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        catalogs.serial = since.unwrap_or_default().as_secs();
    }
    Ok(catalogs)
}

/// Removes a catalog: its pointer, its other documents, and its name in `catalogs.json`. Returns
/// the number of documents that were there; `None` if the store did not have the name either. Its
/// immutable objects go with the next garbage collection, if no other catalog names them.
///
/// The pointer goes first: from then on readers answer 404. A catalog that is published again is a
/// new one: its serials start at 1, so copies of the removed one have to be removed too, or allowed
/// to diverge.
///
/// # Errors
/// [`ReadError`]; calling it again continues where it stopped.
pub async fn remove(store: &dyn Store, catalog: &CatalogName) -> Result<Option<usize>, ReadError> {
    let documents =
        [Key::Current, Key::Status, Key::Notified].map(|document| document(catalog.clone()));
    let mut removed = 0;
    for key in documents {
        if store.head(&key).await?.is_some() {
            store.delete(&key).await?;
            removed += 1;
        }
    }
    let was_listed = remove_name(store, catalog).await?;
    // A publication at the same time adds the name before its commit, which may have been before
    // the line above. Its own look at the name after the commit covers the other order.
    if store.head(&Key::Current(catalog.clone())).await?.is_some() {
        restore_name(store, catalog, false).await?;
    }
    Ok((was_listed || removed > 0).then_some(removed))
}

#[cfg(test)]
mod tests {
    use store::Condition;
    use storekit::MemoryStore;

    use super::*;

    fn name(text: &str) -> CatalogName {
        text.parse().unwrap()
    }

    async fn store_of(pointers: &[&str]) -> MemoryStore {
        let store = MemoryStore::default();
        for catalog in pointers {
            let key = Key::Current(name(catalog));
            store
                .put(&key, "{}".into(), Condition::Always)
                .await
                .unwrap();
        }
        store
    }

    fn names(catalogs: &BTreeSet<CatalogName>) -> Vec<&str> {
        catalogs.iter().map(CatalogName::as_str).collect()
    }

    #[tokio::test]
    async fn lost_or_damaged_names_come_back_from_the_pointers() {
        for damaged in [None, Some("{")] {
            let store = store_of(&["a", "b"]).await;
            if let Some(damaged) = damaged {
                store
                    .put(&Key::Catalogs, damaged.into(), Condition::Always)
                    .await
                    .unwrap();
            }
            assert_eq!(names(&catalog_names(&store).await.unwrap()), ["a", "b"]);
            assert!(!is_listed(&store, &name("a")).await.unwrap());
            restore_name(&store, &name("b"), false).await.unwrap();
            let (read, _) = store
                .read_document::<Catalogs>(&Key::Catalogs)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(names(&read.catalogs), ["a", "b"]);
        }
    }

    #[tokio::test]
    async fn names_of_another_format_are_refused() {
        let store = store_of(&["a"]).await;
        let old = r#"{"formatVersion":1,"catalogs":["a"]}"#;
        store
            .put(&Key::Catalogs, old.into(), Condition::Always)
            .await
            .unwrap();
        let error = add_name(&store, &name("a"), true).await.unwrap_err();
        assert!(matches!(error, ReadError::Document { .. }), "{error}");
    }

    #[tokio::test]
    async fn restore_and_remove_write_only_changes_and_no_name_without_a_pointer() {
        let store = store_of(&["a"]).await;
        let puts = || store.count(|action| matches!(action, storekit::Action::Put(_)));
        let before = puts();
        for _ in 0..2 {
            restore_name(&store, &name("a"), false).await.unwrap();
        }
        assert_eq!(puts(), before + 1);
        store.delete(&Key::Current(name("a"))).await.unwrap();
        for _ in 0..2 {
            remove_name(&store, &name("a")).await.unwrap();
        }
        assert_eq!(puts(), before + 2);
        restore_name(&store, &name("a"), false).await.unwrap();
        assert!(!is_listed(&store, &name("a")).await.unwrap());
    }

    #[tokio::test]
    async fn name_without_a_pointer_is_left_out_and_dropped_once_it_is_old() {
        let store = store_of(&["a"]).await;
        for catalog in ["a", "b"] {
            add_name(&store, &name(catalog), true).await.unwrap();
        }
        assert_eq!(names(&catalog_names(&store).await.unwrap()), ["a"]);
        for (age_min, expected) in [(Duration::from_secs(3600), true), (Duration::ZERO, false)] {
            drop_stale_names(&store, age_min).await.unwrap();
            assert_eq!(is_listed(&store, &name("b")).await.unwrap(), expected);
        }
        assert!(is_listed(&store, &name("a")).await.unwrap());
    }

    #[tokio::test]
    async fn remove_deletes_documents_and_name_and_spares_other_catalogs() {
        let store = store_of(&["a", "b"]).await;
        let [a, b] = ["a", "b"].map(name);
        for name in [&a, &b] {
            add_name(&store, name, true).await.unwrap();
            for key in [Key::Status(name.clone()), Key::Notified(name.clone())] {
                store
                    .put(&key, "{}".into(), Condition::Always)
                    .await
                    .unwrap();
            }
        }
        assert_eq!(remove(&store, &a).await.unwrap(), Some(3));
        assert_eq!(remove(&store, &a).await.unwrap(), None);
        add_name(&store, &a, true).await.unwrap();
        assert_eq!(
            remove(&store, &a).await.unwrap(),
            Some(0),
            "only the name was left"
        );
        assert!(!is_listed(&store, &a).await.unwrap() && is_listed(&store, &b).await.unwrap());
        assert_eq!(store.objects().len(), 4);
    }
}
