use std::collections::BTreeSet;

use layout::{CatalogName, Catalogs, Key};
use store::{Condition, ReadError, Store, StoreExt};

/// Adds a name to `catalogs.json`, whoever else writes it.
///
/// # Errors
/// As [`StoreExt::read_document`] and [`Store::put`].
pub async fn add_name(store: &dyn Store, name: &CatalogName) -> Result<(), ReadError> {
    change(store, |names| names.insert(name.clone())).await
}

/// Takes a name out of `catalogs.json`.
///
/// # Errors
/// As [`add_name`].
pub async fn remove_name(store: &dyn Store, name: &CatalogName) -> Result<(), ReadError> {
    change(store, |names| names.remove(name)).await
}

/// Every lost race means that another name got in, so this ends.
async fn change(store: &dyn Store, edit: impl Fn(&mut BTreeSet<CatalogName>) -> bool) -> Result<(), ReadError> {
    loop {
        let (mut document, condition) = match store.read_document::<Catalogs>(&Key::Catalogs).await? {
            Some((document, version)) => (document, Condition::Replace(version)),
            None => (Catalogs::default(), Condition::CreateOnly),
        };
        if !edit(&mut document.catalogs) {
            return Ok(());
        }
        match store.write_document(&Key::Catalogs, &document, condition).await {
            Err(error) if error.is_conflict() => {}
            written => return written.map(drop).map_err(Into::into),
        }
    }
}
