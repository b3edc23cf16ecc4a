//! Reading what a store publishes.

use std::collections::BTreeSet;

use anyhow::Context;
use layout::{CatalogName, Current, Key, Sha256, ShardRef, Snapshot};
use operators::{Package, Reader};
use store::{Store, StoreExt};

use crate::wiring;

/// What is published of a catalog, if anything is.
pub(crate) async fn current(store: &dyn Store, name: &CatalogName) -> anyhow::Result<Option<Current>> {
    let key = Key::Current(name.clone());
    Ok(store.read_document(&key).await?.map(|(current, _)| current))
}

/// The Snapshot of that content, if the store has it.
pub(crate) async fn snapshot(
    store: &dyn Store,
    name: &CatalogName,
    content_hash: Sha256,
) -> anyhow::Result<Option<Snapshot>> {
    let key = Key::Snapshot(name.clone(), content_hash);
    Ok(store.read_document(&key).await?.map(|(snapshot, _)| snapshot))
}

/// What is published of a catalog that has to be there.
pub(crate) async fn state(store: &dyn Store, name: &CatalogName) -> anyhow::Result<(Current, Snapshot)> {
    let current = current(store, name).await?;
    let current = current.with_context(|| format!("the store has no catalog {name}"))?;
    let snapshot = snapshot(store, name, current.content_hash).await?;
    let snapshot =
        snapshot.with_context(|| format!("the snapshot of {name} is missing; see `catalog-mirror verify`"))?;
    Ok((current, snapshot))
}

/// The catalogs that are named, or all.
pub(crate) async fn chosen(store: &dyn Store, names: &[CatalogName]) -> anyhow::Result<BTreeSet<CatalogName>> {
    if !names.is_empty() {
        return Ok(names.iter().cloned().collect());
    }
    let all = wiring::names(store).await?;
    anyhow::ensure!(!all.is_empty(), "the store has no catalogs");
    Ok(all)
}

/// What the lines of a Shard say.
pub(crate) async fn package(store: &dyn Store, shard: &ShardRef) -> anyhow::Result<Package> {
    let lines = keep::read_shard(store, shard).await;
    let lines = lines.with_context(|| format!("cannot read package {:?}", shard.name))?;
    Ok(tokio::task::spawn_blocking(move || Reader::read(&lines)).await?)
}
