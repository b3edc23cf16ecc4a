use std::collections::BTreeSet;
use std::sync::Arc;

use model::text::is_of_folder;
use model::{CatalogName, Key, ShardRef, Snapshot, Status};
use olm::{Changes, Package, PackageParser, changed_shards};
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics, PollOptions, Report};
use reader::{PublishedCatalogs, PublishedState, ReaderSettings};
use source::Source;
use store::{FolderStore, ReadError, Store, StoreExt};
use sync::{Copier, Origin, SyncOptions};
use tempfile::TempDir;

use crate::{InspectError, SourceReader};

/// Start of the text of a composition in `status.json`.
const COMPOSITION: &str = "compose:";

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
    changes_of_stores([state, state], old, new).await
}

/// Compares two contents, each of the store of its state, package by package.
async fn changes_of_stores(
    [old_state, new_state]: [&PublishedState; 2],
    old: &Snapshot,
    new: &Snapshot,
) -> Result<Changes, InspectError> {
    let mut changes = Changes::new(old.content_hash, new.content_hash);
    for shard in changed_shards(old, new) {
        let older = package_if_any(old_state, shard.old).await?;
        let newer = package_if_any(new_state, shard.new).await?;
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
    let old = Catalog::new(temporary("old")?, old);
    let new = Catalog::new(temporary("new")?, new);
    let catalogs = [old, new];
    let published = publish_to(&folder, reader, &catalogs).await?.catalogs;
    let old = published.state(&catalogs[0].name).await?;
    let new = published.state(&catalogs[1].name).await?;
    changes(&new, &*old.snapshot().await?, &*new.snapshot().await?).await
}

/// Pulls or composes the content of a catalog that is held back once more, and compares it with the
/// published state. The source is the `named` one, else that of the catalog in `configured`, else the
/// one that `status.json` names.
///
/// # Errors
/// A catalog of which nothing is held, or whose source has another revision by now. A folder that is
/// neither named nor configured, because `status.json` has only the last part of its path. A
/// composition that is not configured, or of which an input is not at its published state. Errors of
/// the source and of the store.
pub async fn held_changes(
    reader: &SourceReader,
    store: &Arc<dyn Store>,
    name: &CatalogName,
    named: Option<&str>,
    configured: &[Catalog],
) -> Result<Changes, InspectError> {
    let status: Option<(Status, _)> = store.read_document(&Key::Status(name.clone())).await?;
    let status = status.map(|(status, _)| status);
    let Some((held, _)) = status.as_ref().and_then(Status::held) else {
        let reason = format!("the store holds no content of {name} back: see `ls`");
        return Err(InspectError::Refused(reason));
    };
    let source = status.as_ref().map(|status| status.source.as_str());
    let source = source.unwrap_or_default();
    let folder = tempfile::tempdir().map_err(InspectError::Folder)?;
    let configured = configured.iter().find(|catalog| catalog.name == *name);
    let catalog = match (named, configured) {
        (Some(named), _) => Catalog::new(name.clone(), Source::of_argument(named)?),
        (None, Some(configured)) => configured.clone(),
        (None, None) => catalog_of_status(name, source)?,
    };
    if catalog.source.composed().is_some() {
        copy_inputs(&folder, store, &catalog).await?;
    }
    let pulled = publish_to(&folder, reader, &[catalog]).await?;
    let revision = pulled.revision.unwrap_or_default();
    if revision != held.inputs.revision {
        let reason = format!(
            "the source of {name} has {revision} now, and {} is held: poll the catalog first",
            held.inputs.revision
        );
        return Err(InspectError::Refused(reason));
    }
    let published = PublishedCatalogs::new(store.clone(), ReaderSettings::default());
    let old = published.state(name).await?;
    let new = pulled.catalogs.state(name).await?;
    changes_of_stores(
        [&old, &new],
        &*old.snapshot().await?,
        &*new.snapshot().await?,
    )
    .await
}

/// Returns the catalog of a source that `status.json` names.
fn catalog_of_status(name: &CatalogName, source: &str) -> Result<Catalog, InspectError> {
    if source.starts_with(COMPOSITION) {
        return Err(InspectError::Refused(format!(
            "{name} is a composition: name the file that configures it with --config"
        )));
    }
    if is_of_folder(source) {
        return Err(InspectError::Refused(format!(
            "the store knows only the last part of the folder {source}: name the file that configures {name} with --config, \
             or the folder itself, as in `diff --held {name} dir:/srv/{name}`"
        )));
    }
    Ok(Catalog::new(name.clone(), Source::of_argument(source)?))
}

/// Copies the published inputs of a composition to the temporary store.
async fn copy_inputs(
    folder: &TempDir,
    store: &Arc<dyn Store>,
    composed: &Catalog,
) -> Result<(), InspectError> {
    let inputs: BTreeSet<CatalogName> = composed.source.inputs().cloned().collect();
    let inputs: Vec<CatalogName> = inputs.into_iter().collect();
    let copier = Copier::new(
        Origin::Store(store.clone()),
        temporary_store(folder)?,
        SyncOptions::default(),
    );
    let reports = copier.copy_all(&inputs).await;
    match reports.into_iter().find_map(|report| report.error) {
        Some(error) => Err(InspectError::Refused(error)),
        None => Ok(()),
    }
}

fn temporary_store(folder: &TempDir) -> Result<Arc<dyn Store>, InspectError> {
    let store = FolderStore::open(folder.path().join("store")).map_err(ReadError::from)?;
    Ok(Arc::new(store))
}

/// Catalogs in a temporary store.
struct TemporaryCatalogs {
    catalogs: PublishedCatalogs,
    /// Revision of the last one.
    revision: Option<String>,
}

/// Publishes catalogs to a store in a temporary folder.
async fn publish_to(
    folder: &TempDir,
    reader: &SourceReader,
    catalogs: &[Catalog],
) -> Result<TemporaryCatalogs, InspectError> {
    let store = temporary_store(folder)?;
    let settings = MirrorSettings::with_limits(&reader.limits);
    let sources = reader.sources.clone();
    let mirror = Mirror::new(sources, store.clone(), settings, PollMetrics::default());
    // Forced: a source without packages can be compared too.
    let options = PollOptions {
        force: true,
        ..PollOptions::default()
    };
    let mut reports = mirror.poll_all(catalogs, options).await;
    if let Some(error) = reports.iter().find_map(Report::error_text) {
        return Err(InspectError::Refused(error));
    }
    Ok(TemporaryCatalogs {
        catalogs: PublishedCatalogs::new(store, ReaderSettings::default()),
        revision: reports.pop().and_then(|report| report.digest),
    })
}

fn temporary(name: &str) -> Result<CatalogName, InspectError> {
    name.parse()
        .map_err(|_| InspectError::refused(format!("{name} is no name of a catalog")))
}
