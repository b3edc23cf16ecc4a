//! Reading the published state of a store.

use std::collections::BTreeSet;

use anyhow::Context;
use model::{CatalogName, Current, Key, ObjectRef, ShardRef, Snapshot};
use olm::{Package, PackageParser};
use store::{Store, StoreExt, read_lines, read_stored};
use work::Budget;

use crate::wiring;

/// Returns the pointer of a catalog, or `None` if nothing is published.
pub(crate) async fn current(store: &dyn Store, name: &CatalogName) -> anyhow::Result<Option<Current>> {
    let key = Key::Current(name.clone());
    Ok(store.read_document(&key).await?.map(|(current, _)| current))
}

/// Returns the pointer of a catalog that must be published.
pub(crate) async fn pointer(store: &dyn Store, name: &CatalogName) -> anyhow::Result<Current> {
    let current = current(store, name).await?;
    current.with_context(|| format!("the store has no catalog {name}"))
}

/// Returns a snapshot, or `None` if the store does not have it.
pub(crate) async fn snapshot(store: &dyn Store, object: &ObjectRef) -> anyhow::Result<Option<Snapshot>> {
    match read_stored(store, &object.digest).await {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the pointer and the snapshot of a catalog. Either missing is an error.
pub(crate) async fn state(store: &dyn Store, name: &CatalogName) -> anyhow::Result<(Current, Snapshot)> {
    let current = pointer(store, name).await?;
    let snapshot = snapshot(store, &current.snapshot).await?;
    let snapshot =
        snapshot.with_context(|| format!("the snapshot of {name} is missing; see `catalog-mirror verify`"))?;
    Ok((current, snapshot))
}

/// Returns the named catalogs in order, or all of the store if none is named.
pub(crate) async fn names_or_all(store: &dyn Store, names: &[CatalogName]) -> anyhow::Result<BTreeSet<CatalogName>> {
    if names.is_empty() {
        return wiring::names(store).await;
    }
    Ok(names.iter().cloned().collect())
}

/// Returns the same as [`names_or_all`], and an error for a store without catalogs.
pub(crate) async fn some_names(store: &dyn Store, names: &[CatalogName]) -> anyhow::Result<BTreeSet<CatalogName>> {
    let names = names_or_all(store, names).await?;
    anyhow::ensure!(!names.is_empty(), "the store has no catalogs");
    Ok(names)
}

/// Returns the package in a shard as OLM reads it.
pub(crate) async fn package(store: &dyn Store, shard: &ShardRef) -> anyhow::Result<Package> {
    let lines = read_lines(store, shard, Vec::new()).await;
    let lines = lines.with_context(|| format!("cannot read package {:?}", shard.name))?;
    Ok(work::run(Budget::default(), move || PackageParser::parse(&lines)).await?)
}
