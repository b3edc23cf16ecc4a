use model::{CatalogName, Current, Key};
use store::{ReadError, Store, StoreExt};

use crate::catalogs::{add_name, catalog_names, remove_name};

/// Removes a catalog: its pointer, its other documents, and its name in `catalogs.json`. Returns the number of documents
/// that were there. Its immutable objects go with the next garbage collection, if no other catalog names them.
///
/// The pointer goes first: from then on readers answer 404. A catalog that is published again is a new one: its serials
/// start at 1, so copies of the removed one have to be removed too, or allowed to diverge.
///
/// # Errors
/// [`ReadError`]; calling it again continues where it stopped.
pub async fn remove(store: &dyn Store, catalog: &CatalogName) -> Result<usize, ReadError> {
    let current = Key::Current(catalog.clone());
    let mut removed = 0;
    for key in [
        current.clone(),
        Key::Status(catalog.clone()),
        Key::Notified(catalog.clone()),
    ] {
        if is_there(store, &key).await? {
            store.delete(&key).await?;
            removed += 1;
        }
    }
    remove_name(store, catalog).await?;
    // A publication at the same time adds the name before its commit, which may have been before the line above. Its own
    // look at the name after the commit covers the other order.
    if is_there(store, &current).await? {
        add_name(store, catalog).await?;
    }
    Ok(removed)
}

/// Returns the catalogs of the store that are composed of `input` now.
///
/// # Errors
/// [`ReadError`] if the store fails. A pointer that cannot be read follows nothing.
pub async fn followers(store: &dyn Store, input: &CatalogName) -> Result<Vec<CatalogName>, ReadError> {
    let mut followers = Vec::new();
    for name in catalog_names(store).await?.catalogs {
        let current = match store.read_document::<Current>(&Key::Current(name.clone())).await {
            Ok(current) => current,
            Err(error @ ReadError::Store(_)) => return Err(error),
            Err(_) => None,
        };
        let inputs = current.into_iter().flat_map(|(current, _)| current.source.inputs);
        if inputs.into_iter().any(|known| known.catalog == *input) {
            followers.push(name);
        }
    }
    Ok(followers)
}

async fn is_there(store: &dyn Store, key: &Key) -> Result<bool, ReadError> {
    match store.head(key).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use model::Catalogs;
    use store::Condition;
    use storekit::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn remove_deletes_documents_and_name_and_spares_other_catalogs() {
        let store = MemoryStore::default();
        let [a, b]: [CatalogName; 2] = ["a", "b"].map(|name| name.parse().unwrap());
        for name in [&a, &b] {
            add_name(&store, name).await.unwrap();
            for key in [
                Key::Current(name.clone()),
                Key::Status(name.clone()),
                Key::Notified(name.clone()),
            ] {
                store.put(&key, "{}".into(), Condition::Always).await.unwrap();
            }
        }
        assert_eq!(remove(&store, &a).await.unwrap(), 3);
        assert_eq!(remove(&store, &a).await.unwrap(), 0);
        let (names, _) = store.read_document::<Catalogs>(&Key::Catalogs).await.unwrap().unwrap();
        assert_eq!(names.catalogs, [b.clone()].into());
        assert_eq!(store.objects().len(), 4);
    }
}
