use futures_util::TryStreamExt;
use layout::{CatalogName, Key};
use store::{Store, StoreError};

/// Removes everything that belongs to one catalog and returns how many objects that were.
///
/// `current.json` goes first: from then on readers see no catalog, whatever happens to the rest. `catalogs.json` is the
/// caller's. Shards stay, since other catalogs may name them.
///
/// # Errors
/// As [`Store::list`] and [`Store::delete`]; calling it again goes on where it stopped.
pub async fn remove(store: &dyn Store, catalog: &CatalogName) -> Result<usize, StoreError> {
    store.delete(&Key::Current(catalog.clone())).await?;
    let keys: Vec<Key> = store
        .list(&format!("catalogs/{catalog}/"))
        .map_ok(|listed| listed.key)
        .try_collect()
        .await?;
    for key in &keys {
        store.delete(key).await?;
    }
    Ok(keys.len())
}
