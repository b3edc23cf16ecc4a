use std::sync::Arc;

use anyhow::Context;
use model::{CatalogName, Current, ObjectRef, Sha256, Snapshot};
use olm::{Changes, changed_shards};
use publish::{Catalog, Mirror};
use source::Source;
use store::{FolderStore, Store};

use crate::{
    cli::{self, DiffArgs, RegistryArgs},
    exit::Exit,
    output, published,
    stores::Access,
    wiring,
};

/// Fewest digits of a content hash, as many as git prints. A shorter number is a serial.
const HASH_DIGITS_MIN: usize = 7;

pub(crate) async fn run(args: DiffArgs) -> anyhow::Result<Exit> {
    let changes = if cli::is_source(&args.what) {
        let newer = args.old.as_deref().context("name two sources to compare")?;
        anyhow::ensure!(args.new.is_none(), "name only two sources to compare");
        between_sources([&args.what, newer], &args.registries).await?
    } else {
        let store = args.store.open_alone(Access::Read).await?;
        let name = args.what.parse()?;
        between_states(&*store, &name, args.old.as_deref(), args.new.as_deref()).await?
    };
    if args.json {
        output::print_json(&changes)?;
    } else {
        output::changes::table(&changes)?;
    }
    // The exit code is the answer, as for diff(1), so it needs no --detailed-exitcode.
    Ok(if changes.is_empty() {
        Exit::Success
    } else {
        Exit::Changed
    })
}

async fn between_states(
    store: &dyn Store,
    name: &CatalogName,
    old: Option<&str>,
    new: Option<&str>,
) -> anyhow::Result<Changes> {
    let current = published::current(store, name).await?;
    let current = current.with_context(|| format!("the store has no catalog {name}"))?;
    let old = find(&current, old.unwrap_or("previous"))?;
    let new = find(&current, new.unwrap_or("current"))?;
    let old = snapshot(store, name, &old).await?;
    let new = snapshot(store, name, &new).await?;
    compare(store, &old, &new).await
}

async fn snapshot(store: &dyn Store, name: &CatalogName, state: &KnownState) -> anyhow::Result<Snapshot> {
    let snapshot = published::snapshot(store, &state.snapshot).await?;
    snapshot.with_context(|| format!("the store does not keep the state {} of {name}", state.hash))
}

/// A state of a catalog that its pointer names.
#[derive(Clone, Copy)]
struct KnownState {
    serial: u64,
    hash: Sha256,
    snapshot: ObjectRef,
}

/// Returns the state that a text names.
fn find(current: &Current, text: &str) -> anyhow::Result<KnownState> {
    let previous = current.previous.iter().map(|previous| KnownState {
        serial: previous.serial,
        hash: previous.content_hash,
        snapshot: previous.snapshot,
    });
    let newest = KnownState {
        serial: current.serial,
        hash: current.content_hash,
        snapshot: current.snapshot,
    };
    let states: Vec<KnownState> = std::iter::once(newest).chain(previous).collect();
    match text {
        "current" => Ok(newest),
        "previous" => states.get(1).copied().context("only one state has been published"),
        _ if text.len() < HASH_DIGITS_MIN => by_serial(&states, text),
        _ => by_hash(&states, text),
    }
}

fn by_serial(states: &[KnownState], text: &str) -> anyhow::Result<KnownState> {
    let serial: u64 = text
        .parse()
        .with_context(|| format!("{text:?} is neither `previous`, `current`, a serial, nor the start of a hash"))?;
    let state = states.iter().find(|state| state.serial == serial);
    state
        .copied()
        .with_context(|| format!("current.json names no publication with the serial {serial}"))
}

fn by_hash(states: &[KnownState], text: &str) -> anyhow::Result<KnownState> {
    let mut found: Vec<KnownState> = states.to_vec();
    found.retain(|state| state.hash.to_string().starts_with(text));
    // The newest publication of each content: they are in this order.
    found.sort_by_key(|state| state.hash);
    found.dedup_by_key(|state| state.hash);
    match found.as_slice() {
        [state] => Ok(*state),
        [] => anyhow::bail!("current.json names no publication whose content hash starts with {text:?}"),
        _ => anyhow::bail!("several publications have content hashes that start with {text:?}"),
    }
}

/// Publishes both sources to a temporary store and compares them there.
async fn between_sources(sources: [&str; 2], registries: &RegistryArgs) -> anyhow::Result<Changes> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let store: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path().join("store"))?);
    let (images, limits) = wiring::sources(registries)?;
    let mirror = Mirror::new(
        images,
        Arc::clone(&store),
        publish::MirrorSettings::with_limits(&limits),
        publish::PollMetrics::default(),
    );
    let [old, new] = sources.map(cli::source);
    let catalogs = [catalog("old", old?)?, catalog("new", new?)?];
    // Forced: a source without packages can be compared too.
    for report in mirror.poll_all(&catalogs, true).await {
        if let Some(error) = report.error_text() {
            anyhow::bail!("{error}");
        }
    }
    let (_, old) = published::state(&*store, &catalogs[0].name).await?;
    let (_, new) = published::state(&*store, &catalogs[1].name).await?;
    compare(&*store, &old, &new).await
}

fn catalog(name: &str, source: Source) -> anyhow::Result<Catalog> {
    Ok(Catalog::new(name.parse()?, source))
}

async fn compare(store: &dyn Store, old: &Snapshot, new: &Snapshot) -> anyhow::Result<Changes> {
    let mut changes = Changes::new(old.content_hash, new.content_hash);
    for package in changed_shards(old, new) {
        let older = match package.old {
            Some(shard) => Some(published::package(store, shard).await?),
            None => None,
        };
        let newer = match package.new {
            Some(shard) => Some(published::package(store, shard).await?),
            None => None,
        };
        changes.add(package.name, older.as_ref(), newer.as_ref());
    }
    Ok(changes)
}
