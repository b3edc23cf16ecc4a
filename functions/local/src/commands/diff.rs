use std::sync::Arc;

use ::poll::{Catalog, Mirror};
use anyhow::Context;
use config::Config;
use image::{Images, Source};
use layout::{Availability, CatalogName, Current, Sha256, Snapshot};
use operators::{Changes, differing};
use store::{FolderStore, Store};

use crate::{
    cli::{self, Diff, RegistryArgs},
    exit::Exit,
    output, published, wiring,
};

/// A shorter number is taken for a serial. As long as git's abbreviations.
const SHORTEST_HASH: usize = 7;

pub(crate) async fn run(args: Diff) -> anyhow::Result<Exit> {
    let changes = if is_source(&args.what) {
        let newer = args.old.as_deref().context("name two sources to compare")?;
        anyhow::ensure!(args.new.is_none(), "of sources there are only two to compare");
        between_sources([&args.what, newer], args.registries).await?
    } else {
        let store = args.store.open_to_read(&Config::default()).await?;
        let name = args.what.parse()?;
        between_states(&*store, &name, args.old.as_deref(), args.new.as_deref()).await?
    };
    if args.json {
        output::changes::json(&changes)?;
    } else {
        output::changes::table(&changes)?;
    }
    Ok(if changes.is_empty() { Exit::Fine } else { Exit::Changed })
}

/// The name of a catalog holds neither.
fn is_source(text: &str) -> bool {
    text.contains([':', '/'])
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
    let old = snapshot(store, name, old).await?;
    let new = snapshot(store, name, new).await?;
    compare(store, &old, &new).await
}

async fn snapshot(store: &dyn Store, name: &CatalogName, hash: Sha256) -> anyhow::Result<Snapshot> {
    let snapshot = published::snapshot(store, name, hash).await?;
    snapshot.with_context(|| format!("the store does not keep the state {hash} of {name}"))
}

/// The content hash of the state that the text names.
fn find(current: &Current, text: &str) -> anyhow::Result<Sha256> {
    let previous = current
        .previous
        .iter()
        .map(|previous| (previous.serial, previous.content_hash));
    let states: Vec<(u64, Sha256)> = std::iter::once((current.serial, current.content_hash))
        .chain(previous)
        .collect();
    match text {
        "current" => Ok(current.content_hash),
        "previous" => states
            .get(1)
            .map(|(_, hash)| *hash)
            .context("only one state has been published"),
        _ if text.len() < SHORTEST_HASH => by_serial(&states, text),
        _ => by_hash(&states, text),
    }
}

fn by_serial(states: &[(u64, Sha256)], text: &str) -> anyhow::Result<Sha256> {
    let serial: u64 = text
        .parse()
        .with_context(|| format!("{text:?} is neither `previous`, `current`, a serial, nor the start of a hash"))?;
    let state = states.iter().find(|(known, _)| *known == serial);
    state
        .map(|(_, hash)| *hash)
        .with_context(|| format!("no publication with the serial {serial} is remembered"))
}

/// A whole hash may be older than what is remembered, as long as it is kept.
fn by_hash(states: &[(u64, Sha256)], text: &str) -> anyhow::Result<Sha256> {
    if let Ok(hash) = text.parse() {
        return Ok(hash);
    }
    let mut found: Vec<Sha256> = states.iter().map(|(_, hash)| *hash).collect();
    found.retain(|hash| hash.to_string().starts_with(text));
    found.sort_unstable();
    found.dedup();
    match found.as_slice() {
        [hash] => Ok(*hash),
        [] => anyhow::bail!("no publication whose content hash starts with {text:?} is remembered"),
        _ => anyhow::bail!("several publications have content hashes that start with {text:?}"),
    }
}

/// Publishes both into a store that is thrown away.
async fn between_sources(sources: [&str; 2], registries: RegistryArgs) -> anyhow::Result<Changes> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let store: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path().join("store"))?);
    let images = Images::new(wiring::images(registries)?)?;
    let mirror = Mirror::new(
        images,
        Arc::clone(&store),
        ::poll::Settings::default(),
        ::poll::Metrics::default(),
    );
    let [old, new] = sources.map(cli::source);
    let catalogs = [catalog("old", old?)?, catalog("new", new?)?];
    // Forced, since a source without packages can be compared too.
    for report in mirror.turn_all(&catalogs, true).await {
        if let Some(error) = report.error_text() {
            anyhow::bail!("{error}");
        }
    }
    let (_, old) = published::state(&*store, &catalogs[0].name).await?;
    let (_, new) = published::state(&*store, &catalogs[1].name).await?;
    compare(&*store, &old, &new).await
}

fn catalog(name: &str, source: Source) -> anyhow::Result<Catalog> {
    Ok(Catalog {
        name: name.parse()?,
        source,
        availability: Availability::Available,
        interval: None,
        policy: None,
        lookaside: None,
    })
}

async fn compare(store: &dyn Store, old: &Snapshot, new: &Snapshot) -> anyhow::Result<Changes> {
    let mut changes = Changes::new(old.content_hash, new.content_hash);
    for package in differing(old, new) {
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
