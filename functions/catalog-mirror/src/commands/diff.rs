use std::{slice, sync::Arc};

use anyhow::Context;
use clap::Args;
use inspect::{between_sources, held_changes, published};
use model::Snapshot;
use olm::Changes;
use reader::PublishedState;
use source::Source;
use store::{Store, find_stored};
use terminal::{Exit, print_rows, print_text, short};

use crate::args::{self, Access, CatalogAccess, KeyArgs, files_and_keys};
use crate::wiring;

#[derive(Debug, Args)]
#[command(after_help = "\
A state is `previous` (default of OLD), `current` (default of NEW), a serial, or the first digits of a content hash (at \
least 7). Sources are written as for `render` and need no store.

Exit codes: 0 no differences, 10 differences, 1 failed.")]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    access: CatalogAccess,
    /// Print the JSON document of `GET /catalogs/{c}/changes` instead of a table.
    #[arg(long)]
    json: bool,
    /// Compare the published state with the content that is held back. It is pulled once more: from
    /// the source that --config gives the catalog, or that stands after the name, else from the one
    /// that the store names. Of a folder the store knows only the last part.
    #[arg(long, conflicts_with = "new")]
    held: bool,
    /// Catalog of the store, or the older of two sources, such as dir:before or quay.io/a/b:v1.
    #[arg(value_name = "NAME|SOURCE")]
    what: String,
    /// Older state of the catalog, another catalog whose published state is the newer one, or the
    /// newer source.
    #[arg(value_name = "OLD|NAME|SOURCE")]
    old: Option<String>,
    /// Newer state of the catalog. Default: the current one.
    #[arg(value_name = "NEW")]
    new: Option<String>,
}

/// Fewest digits of a content hash, as many as git prints. A shorter number is a serial.
const HASH_DIGITS_MIN: usize = 7;

pub(crate) async fn run(args: DiffArgs) -> anyhow::Result<Exit> {
    let changes = if args.held {
        let store = args.access.store.open_alone(Access::Read).await?;
        let reader = wiring::sources(&args.access.registries)?;
        let config = files_and_keys(&args.access.store.config, &KeyArgs::default())?;
        let name = args.what.parse()?;
        let source = args.old.as_deref();
        held_changes(&reader, &store, &name, source, &config.catalogs).await?
    } else if args::is_source(&args.what) {
        let newer = args.old.as_deref().context("name two sources to compare")?;
        anyhow::ensure!(args.new.is_none(), "name only two sources to compare");
        let reader = wiring::sources(&args.access.registries)?;
        let old = Source::of_argument(&args.what)?;
        between_sources(&reader, old, Source::of_argument(newer)?).await?
    } else {
        let store = args.access.store.open_alone(Access::Read).await?;
        let name = args.what.parse()?;
        let state = published::state(&store, &name).await?;
        if let Some(other) = other_catalog(&store, &args).await? {
            let old = published::snapshot(&state).await?;
            let new = published::snapshot(&other).await?;
            return print(&inspect::changes(&other, &old, &new).await?, args.json);
        }
        let old = args.old.as_deref().unwrap_or("previous");
        let new = args.new.as_deref().unwrap_or("current");
        let old = find(&store, &state, old).await?;
        let new = find(&store, &state, new).await?;
        inspect::changes(&state, &old, &new).await?
    };
    print(&changes, args.json)
}

/// Returns the catalog with which another one is compared, if the second name is one and no state.
async fn other_catalog(
    store: &Arc<dyn Store>,
    args: &DiffArgs,
) -> anyhow::Result<Option<PublishedState>> {
    let named = args.old.as_deref().filter(|_| args.new.is_none());
    match named.and_then(|text| text.parse().ok()) {
        Some(name) => Ok(published::find(store, &name).await?),
        None => Ok(None),
    }
}

/// Prints the changes, and returns whether there are some.
fn print(changes: &Changes, json: bool) -> anyhow::Result<Exit> {
    terminal::print_report(changes, json, print_changes)?;
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
    store: &Arc<dyn Store>,
    state: &PublishedState,
    text: &str,
) -> anyhow::Result<Snapshot> {
    let name = state.name();
    let mut states = state.current().publications().into_iter();
    let found = match text {
        "current" => states.next(),
        "previous" => states.nth(1),
        _ if text.len() < HASH_DIGITS_MIN => states.find(|state| state.serial.to_string() == text),
        _ => {
            let hash = published::content_hash(store, slice::from_ref(name), text).await?;
            states.find(|state| state.content_hash == hash)
        }
    };
    anyhow::ensure!(
        found.is_some() || text != "previous",
        "{name} has no earlier state: it was published once so far"
    );
    let found = found.with_context(|| {
        format!(
            "current.json names no publication {text:?}: write `previous`, `current`, a serial, or the start of a content hash; \
             `history` lists them"
        )
    })?;
    let snapshot = find_stored(&**store, &found.snapshot.digest).await?;
    snapshot.with_context(|| {
        format!(
            "the store does not keep the state {} of {name}",
            found.content_hash
        )
    })
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
