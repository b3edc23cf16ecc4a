use std::sync::Arc;

use model::{CatalogName, ShardRef, Snapshot};
use olm::{Changes, Package, PackageParser, changed_shards};
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics};
use reader::{PublishedCatalogs, PublishedState, ReaderSettings};
use source::Source;
use store::{FolderStore, ReadError, Store};

use crate::{InspectError, SourceReader};

/// Reads the lines of a shard, whose stored bytes are verified.
///
/// # Errors
/// An object that is missing or damaged. Names the package.
pub async fn shard_lines(
    state: &PublishedState,
    shard: &ShardRef,
) -> Result<Vec<u8>, InspectError> {
    let lines = state.shard_lines(shard).await;
    lines.map_err(|error| {
        InspectError::State(error).part(format!("cannot read package {:?}", shard.name))
    })
}

/// Reads the package in a shard as OLM does.
///
/// # Errors
/// As [`shard_lines`].
pub async fn package(state: &PublishedState, shard: &ShardRef) -> Result<Package, InspectError> {
    // Here and not on a blocking thread: a command does nothing else meanwhile.
    Ok(PackageParser::parse(&shard_lines(state, shard).await?))
}

/// Compares two contents of one store, package by package. `state` is any of its states, whose
/// store is read.
///
/// # Errors
/// As [`package`].
pub async fn changes(
    state: &PublishedState,
    old: &Snapshot,
    new: &Snapshot,
) -> Result<Changes, InspectError> {
    let mut changes = Changes::new(old.content_hash, new.content_hash);
    for shard in changed_shards(old, new) {
        let older = package_if_any(state, shard.old).await?;
        let newer = package_if_any(state, shard.new).await?;
        changes.add(shard.name, older.as_ref(), newer.as_ref());
    }
    Ok(changes)
}

async fn package_if_any(
    state: &PublishedState,
    shard: Option<&ShardRef>,
) -> Result<Option<Package>, InspectError> {
    match shard {
        Some(shard) => package(state, shard).await.map(Some),
        None => Ok(None),
    }
}

/// Compares two sources: publishes both to a temporary store, and compares them there.
///
/// # Errors
/// A source that cannot be published.
pub async fn between_sources(
    reader: &SourceReader,
    old: Source,
    new: Source,
) -> Result<Changes, InspectError> {
    let folder = tempfile::tempdir().map_err(InspectError::Folder)?;
    let store = FolderStore::open(folder.path().join("store")).map_err(ReadError::from)?;
    let store: Arc<dyn Store> = Arc::new(store);
    let settings = MirrorSettings::with_limits(&reader.limits);
    let sources = reader.sources.clone();
    let mirror = Mirror::new(sources, store.clone(), settings, PollMetrics::default());
    let old = Catalog::new(temporary("old")?, old);
    let new = Catalog::new(temporary("new")?, new);
    let catalogs = [old, new];
    // Forced: a source without packages can be compared too.
    let mut reports = mirror.poll_all(&catalogs, true).await.into_iter();
    if let Some(error) = reports.find_map(|report| report.error_text()) {
        return Err(InspectError::Refused(error));
    }
    let published = PublishedCatalogs::new(store, ReaderSettings::default());
    let old = published.state(&catalogs[0].name).await?;
    let new = published.state(&catalogs[1].name).await?;
    changes(&new, &*old.snapshot().await?, &*new.snapshot().await?).await
}

fn temporary(name: &str) -> Result<CatalogName, InspectError> {
    name.parse()
        .map_err(|_| InspectError::refused(format!("{name} is no name of a catalog")))
}
