//! Reading the published state of a store.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use model::text::did_you_mean;
use model::{CatalogName, Current, Document, Key, Sha256, Snapshot};
use reader::{PublishedCatalogs, PublishedState, ReaderError, ReaderSettings};
use store::{ReadError, Store, StoreExt};

use crate::InspectError;

/// Returns the published state of a catalog, or `None` if nothing is published.
///
/// # Errors
/// A state that cannot be read.
pub async fn find(
    store: &Arc<dyn Store>,
    name: &CatalogName,
) -> Result<Option<PublishedState>, InspectError> {
    let catalogs = PublishedCatalogs::new(store.clone(), ReaderSettings::default());
    match catalogs.state(name).await {
        Err(ReaderError::UnknownCatalog(_)) => Ok(None),
        found => Ok(Some(found?)),
    }
}

/// Returns the published state of a catalog that must be published.
///
/// # Errors
/// A state that cannot be read, and a name that no catalog of the store has.
pub async fn state(
    store: &Arc<dyn Store>,
    name: &CatalogName,
) -> Result<PublishedState, InspectError> {
    match find(store, name).await? {
        Some(state) => Ok(state),
        None => Err(InspectError::refused(unknown(&**store, name).await?)),
    }
}

/// Returns the Snapshot of a published state.
///
/// # Errors
/// A Snapshot that cannot be read.
pub async fn snapshot(state: &PublishedState) -> Result<Arc<Snapshot>, InspectError> {
    let name = state.name();
    let snapshot = state.snapshot().await;
    snapshot.map_err(|error| {
        let what = format!("the snapshot of {name} cannot be read; see `catalog-mirror verify`");
        InspectError::from(error).part(what)
    })
}

/// Returns the error for a name that no catalog of the store has.
///
/// # Errors
/// A store that cannot be read.
pub async fn unknown(store: &dyn Store, name: &CatalogName) -> Result<String, InspectError> {
    let names = publish::catalog_names(store).await?;
    let similar = did_you_mean(name.as_str(), names.iter().map(CatalogName::as_str));
    // A source needs a colon or a slash, so the name of a folder alone is taken for that of a
    // catalog.
    let folder = if Path::new(name.as_str()).exists() {
        format!("; write ./{name} for the folder")
    } else {
        String::new()
    };
    Ok(format!("the store has no catalog {name}{similar}{folder}"))
}

/// Returns the names of the packages of all catalogs.
///
/// # Errors
/// A state that cannot be read.
pub async fn package_names(store: &Arc<dyn Store>) -> Result<BTreeSet<String>, InspectError> {
    let mut packages = BTreeSet::new();
    for catalog in publish::catalog_names(&**store).await? {
        let state = state(store, &catalog).await?;
        let snapshot = snapshot(&state).await?;
        packages.extend(snapshot.packages.iter().map(|shard| shard.name.clone()));
    }
    Ok(packages)
}

/// Returns the content hash that starts with these digits, of all states of the catalogs.
///
/// # Errors
/// Digits with which no content hash begins, or several.
pub async fn content_hash(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
    digits: &str,
) -> Result<Sha256, InspectError> {
    if let Ok(whole) = digits.parse() {
        return Ok(whole);
    }
    let mut found = BTreeSet::new();
    for name in names {
        let states = state(store, name).await?.current().publications();
        found.extend(states.into_iter().map(|state| state.content_hash));
    }
    found.retain(|hash| !digits.is_empty() && hash.to_string().starts_with(digits));
    let Some(first) = found.pop_first() else {
        return Err(InspectError::refused(format!(
            "no state of the catalogs has a content hash that starts with {digits:?}; see `history NAME`"
        )));
    };
    if !found.is_empty() {
        let count = 1 + found.len();
        return Err(InspectError::refused(format!(
            "{count} states have content hashes that start with {digits:?}: write more digits"
        )));
    }
    Ok(first)
}

/// Returns the named catalogs in order, or all of the store if none is named. Refuses names that no
/// catalog of the store has.
///
/// # Errors
/// A name that no catalog of the store has.
pub async fn names_or_all(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
) -> Result<Vec<CatalogName>, InspectError> {
    for name in names {
        // A pointer that cannot be read is told by those who read it.
        if matches!(find(store, name).await, Ok(None)) {
            return Err(InspectError::refused(unknown(&**store, name).await?));
        }
    }
    let mut names: BTreeSet<CatalogName> = names.iter().cloned().collect();
    if names.is_empty() {
        // Also if `catalogs.json` is lost.
        names = publish::catalog_names(&**store).await?;
    }
    Ok(names.into_iter().collect())
}

/// Returns the same as [`names_or_all`], and an error for a store without catalogs.
///
/// # Errors
/// As [`names_or_all`], and a store without catalogs.
pub async fn some_names(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
) -> Result<Vec<CatalogName>, InspectError> {
    let names = names_or_all(store, names).await?;
    if names.is_empty() {
        return Err(InspectError::refused("the store has no catalogs"));
    }
    Ok(names)
}

/// Returns the catalogs of the store that are composed of `input` now, or follow it as rings.
///
/// # Errors
/// A store that fails. A pointer that cannot be read follows nothing.
pub async fn followers(
    store: &dyn Store,
    input: &CatalogName,
) -> Result<Vec<CatalogName>, InspectError> {
    let mut followers = Vec::new();
    for name in publish::catalog_names(store).await? {
        let current = match store
            .read_document::<Current>(&Key::Current(name.clone()))
            .await
        {
            Ok(current) => current,
            Err(error @ ReadError::Store(_)) => return Err(error.into()),
            Err(_) => None,
        };
        if current.is_some_and(|(current, _)| current.source.follows(input)) {
            followers.push(name);
        }
    }
    Ok(followers)
}

/// Returns the receipt of the named catalogs, or of all.
///
/// # Errors
/// As [`names_or_all`], and a state that cannot be read.
pub async fn receipt(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
) -> Result<Vec<u8>, InspectError> {
    let names = names_or_all(store, names).await?;
    Ok(sync::receipt(&**store, &names).await?.to_bytes())
}
