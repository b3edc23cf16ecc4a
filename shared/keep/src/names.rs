use layout::{CatalogName, Catalogs, Key};
use store::{Condition, ReadError, Store, StoreExt};

/// Adds a name to `catalogs.json`, whoever else writes it. Every lost race means that another name got in, or went, so
/// this ends.
///
/// # Errors
/// As [`StoreExt::read_document`] and [`Store::put`].
pub async fn add_name(store: &dyn Store, name: &CatalogName) -> Result<(), ReadError> {
    loop {
        let (mut document, condition) = match store.read_document::<Catalogs>(&Key::Catalogs).await? {
            Some((document, version)) => (document, Condition::Replace(version)),
            None => (Catalogs::default(), Condition::CreateOnly),
        };
        if !document.add(name) {
            return Ok(());
        }
        match store.write_document(&Key::Catalogs, &document, condition).await {
            Err(error) if error.is_conflict() => {}
            written => return written.map(drop).map_err(Into::into),
        }
    }
}

/// Whether `catalogs.json` has a name.
pub(crate) async fn is_listed(store: &dyn Store, name: &CatalogName) -> Result<bool, ReadError> {
    let found = store.read_document::<Catalogs>(&Key::Catalogs).await?;
    Ok(found.is_some_and(|(document, _)| document.catalogs.contains(name)))
}

/// Takes a name out of `catalogs.json` if nobody else changes that meanwhile, and if it still `may` be when it is about
/// to be written; whether it is out.
pub(crate) async fn try_remove_name(
    store: &dyn Store,
    name: &CatalogName,
    may: impl Fn() -> bool,
) -> Result<bool, ReadError> {
    let Some((mut document, version)) = store.read_document::<Catalogs>(&Key::Catalogs).await? else {
        return Ok(true);
    };
    if !document.remove(name) {
        return Ok(true);
    }
    if !may() {
        return Ok(false);
    }
    match store
        .write_document(&Key::Catalogs, &document, Condition::Replace(version))
        .await
    {
        Err(error) if error.is_conflict() => Ok(false),
        written => Ok(written.map(|_| true)?),
    }
}
