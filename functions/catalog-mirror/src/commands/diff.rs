use std::{slice, sync::Arc};

use anyhow::Context;
use clap::Args;
use model::{CatalogName, Current, ShardRef, Snapshot};
use olm::{Changes, changed_shards};
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics};
use source::Source;
use store::{FolderStore, Store, find_stored};

use crate::args::{self, Access, CatalogAccess, RegistryArgs};
use crate::{published, wiring};
use terminal::Exit;
use terminal::{print_rows, print_text, short};

#[derive(Debug, Args)]
#[command(after_help = "\
A state is `previous` (default of OLD), `current` (default of NEW), a serial, or the first digits of a content hash (at \
least 7). Sources are written as for `render` and need no store.

Exit codes: 0 no differences, 10 differences, 1 failed.")]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) access: CatalogAccess,
    /// Print the JSON document of `GET /catalogs/{c}/changes` instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Catalog of the store, or the older of two sources, such as dir:before or quay.io/a/b:v1.
    #[arg(value_name = "NAME|SOURCE")]
    pub(crate) what: String,
    /// Older state of the catalog, or the newer source.
    #[arg(value_name = "OLD|SOURCE")]
    pub(crate) old: Option<String>,
    /// Newer state of the catalog. Default: the current one.
    #[arg(value_name = "NEW")]
    pub(crate) new: Option<String>,
}

/// Fewest digits of a content hash, as many as git prints. A shorter number is a serial.
const HASH_DIGITS_MIN: usize = 7;

pub(crate) async fn run(args: DiffArgs) -> anyhow::Result<Exit> {
    let changes = if args::is_source(&args.what) {
        let newer = args.old.as_deref().context("name two sources to compare")?;
        anyhow::ensure!(args.new.is_none(), "name only two sources to compare");
        between_sources([&args.what, newer], &args.access.registries).await?
    } else {
        let store = args.access.store.open_alone(Access::Read).await?;
        let name = args.what.parse()?;
        let current = published::pointer(&*store, &name).await?;
        let (old, new) = (args.old.as_deref(), args.new.as_deref());
        let old = find(&*store, &name, &current, old.unwrap_or("previous")).await?;
        let new = find(&*store, &name, &current, new.unwrap_or("current")).await?;
        compare(&*store, &old, &new).await?
    };
    terminal::print_report(&changes, args.json, print_changes)?;
    // The exit code is the answer, as for diff(1), so it needs no --detailed-exitcode.
    let differs = !changes.is_empty();
    Ok(if differs {
        Exit::Changed
    } else {
        Exit::Success
    })
}

/// Reads the publication that a text names, of those in the pointer: the newest of its content.
async fn find(
    store: &dyn Store,
    name: &CatalogName,
    current: &Current,
    text: &str,
) -> anyhow::Result<Snapshot> {
    let mut states = current.publications().into_iter();
    let found = match text {
        "current" => states.next(),
        "previous" => states.nth(1),
        _ if text.len() < HASH_DIGITS_MIN => states.find(|state| state.serial.to_string() == text),
        _ => {
            let hash = published::content_hash(store, slice::from_ref(name), text).await?;
            states.find(|state| state.content_hash == hash)
        }
    };
    let found = found.with_context(|| {
        format!(
            "current.json names no publication {text:?}: write `previous`, `current`, a serial, or the start of a content hash; \
             `history` lists them"
        )
    })?;
    let snapshot = find_stored(store, &found.snapshot.digest).await?;
    snapshot.with_context(|| {
        format!(
            "the store does not keep the state {} of {name}",
            found.content_hash
        )
    })
}

/// Publishes both sources to a temporary store and compares them there.
async fn between_sources(sources: [&str; 2], registries: &RegistryArgs) -> anyhow::Result<Changes> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let store: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path().join("store"))?);
    let (images, limits) = wiring::sources(&[], registries)?;
    let settings = MirrorSettings::with_limits(&limits);
    let mirror = Mirror::new(images, store.clone(), settings, PollMetrics::default());
    let [old, new] = sources.map(Source::of_argument);
    let catalogs = [
        Catalog::new("old".parse()?, old?),
        Catalog::new("new".parse()?, new?),
    ];
    // Forced: a source without packages can be compared too.
    let mut reports = mirror.poll_all(&catalogs, true).await.into_iter();
    if let Some(error) = reports.find_map(|report| report.error_text()) {
        anyhow::bail!("{error}");
    }
    let (_, old) = published::state(&*store, &catalogs[0].name).await?;
    let (_, new) = published::state(&*store, &catalogs[1].name).await?;
    compare(&*store, &old, &new).await
}

async fn compare(store: &dyn Store, old: &Snapshot, new: &Snapshot) -> anyhow::Result<Changes> {
    let read = async |shard: Option<&ShardRef>| match shard {
        Some(shard) => published::package(store, shard).await.map(Some),
        None => Ok(None),
    };
    let mut changes = Changes::new(old.content_hash, new.content_hash);
    for package in changed_shards(old, new) {
        let (older, newer) = (read(package.old).await?, read(package.new).await?);
        changes.add(package.name, older.as_ref(), newer.as_ref());
    }
    Ok(changes)
}

/// Prints one line for each thing that was added (+), removed (-) or changed (~).
fn print_changes(changes: &Changes) -> anyhow::Result<()> {
    if !changes.is_empty() {
        print_rows(
            &["", "PACKAGE", "WHAT", "NAME", "FROM", "TO"],
            &changes.rows(),
        )?;
    }
    let packages = &changes.packages;
    print_text(&format!(
        "{} -> {}: {} packages added, {} removed, {} changed\n",
        short(&changes.from),
        short(&changes.to),
        packages.added.len(),
        packages.removed.len(),
        packages.changed.len()
    ))
}
