//! Reading the published state of a store.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use anyhow::Context;
use model::text::did_you_mean;
use model::{CatalogName, Document, Sha256, Snapshot};
use reader::{PublishedCatalogs, PublishedState, ReaderError, ReaderSettings};
use store::Store;

/// Returns the published state of a catalog, or `None` if nothing is published.
pub(crate) async fn find(
    store: &Arc<dyn Store>,
    name: &CatalogName,
) -> anyhow::Result<Option<PublishedState>> {
    let catalogs = PublishedCatalogs::new(store.clone(), ReaderSettings::default());
    match catalogs.state(name).await {
        Err(ReaderError::UnknownCatalog(_)) => Ok(None),
        found => Ok(Some(found?)),
    }
}

/// Returns the published state of a catalog that must be published.
pub(crate) async fn state(
    store: &Arc<dyn Store>,
    name: &CatalogName,
) -> anyhow::Result<PublishedState> {
    match find(store, name).await? {
        Some(state) => Ok(state),
        None => anyhow::bail!("{}", unknown(&**store, name).await?),
    }
}

/// Returns the Snapshot of a published state.
pub(crate) async fn snapshot(state: &PublishedState) -> anyhow::Result<Arc<Snapshot>> {
    let name = state.name();
    let snapshot = state.snapshot().await;
    snapshot.with_context(|| {
        format!("the snapshot of {name} cannot be read; see `catalog-mirror verify`")
    })
}

/// Returns the error for a name that no catalog of the store has.
pub(crate) async fn unknown(store: &dyn Store, name: &CatalogName) -> anyhow::Result<String> {
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

/// Returns the content hash that starts with these digits, of all states of the catalogs.
pub(crate) async fn content_hash(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
    digits: &str,
) -> anyhow::Result<Sha256> {
    if let Ok(whole) = digits.parse() {
        return Ok(whole);
    }
    let mut found = BTreeSet::new();
    for name in names {
        let states = state(store, name).await?.current().publications();
        found.extend(states.into_iter().map(|state| state.content_hash));
    }
    found.retain(|hash| hash.to_string().starts_with(digits));
    match found.len() {
        1 => found.pop_first().context("there is one"),
        0 => {
            anyhow::bail!(
                "no state of the catalogs has a content hash that starts with {digits:?}; see `history NAME`"
            )
        }
        count => anyhow::bail!(
            "{count} states have content hashes that start with {digits:?}: write more digits"
        ),
    }
}

/// Returns the named catalogs in order, or all of the store if none is named. Refuses names that no
/// catalog of the store has.
pub(crate) async fn names_or_all(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
) -> anyhow::Result<Vec<CatalogName>> {
    for name in names {
        // A pointer that cannot be read is told by those who read it.
        if matches!(find(store, name).await, Ok(None)) {
            anyhow::bail!("{}", unknown(&**store, name).await?);
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
pub(crate) async fn some_names(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
) -> anyhow::Result<Vec<CatalogName>> {
    let names = names_or_all(store, names).await?;
    anyhow::ensure!(!names.is_empty(), "the store has no catalogs");
    Ok(names)
}

/// Returns the receipt of the named catalogs, or of all.
pub(crate) async fn receipt(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
) -> anyhow::Result<Vec<u8>> {
    let names = names_or_all(store, names).await?;
    Ok(sync::receipt(&**store, &names).await?.to_bytes())
}
