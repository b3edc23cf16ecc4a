use std::time::SystemTime;

use clap::Args;
use humantime::format_rfc3339_seconds as time;
use model::{CatalogName, Sha256};
use publish::ChangedPackages;
use serde::{Serialize, Serializer};
use store::Store;

use super::poll::changes;
use crate::{
    args::{Access, StoreArgs},
    exit::Exit,
    output::{Column, Table, cell, print, short},
    published,
};

#[derive(Debug, Args)]
#[command(after_help = "\
CHANGED counts the packages that were added (+), removed (-) and changed (~) since the state before. `diff NAME OLD NEW` shows \
them. A state that is not stored was removed by a collection: it can no longer be rolled back to.")]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Name of the catalog.
    #[arg(value_name = "NAME")]
    pub(crate) name: CatalogName,
}

pub(crate) async fn run(args: HistoryArgs) -> anyhow::Result<Exit> {
    let store = args.store.open_alone(Access::Read).await?;
    let current = published::pointer(&*store, &args.name).await?;
    let states = states(&*store, &current).await?;
    print(&states, args.json)?;
    if !args.json && current.rolled_back.is_some() {
        println!("{}: {HELD_BACK}", args.name);
    }
    Ok(Exit::Success)
}

/// Text about a catalog after a rollback.
pub(super) const HELD_BACK: &str = "rolled back: it stays at this state until its source changes or a poll is forced";

async fn states(store: &dyn Store, current: &model::Current) -> anyhow::Result<Vec<HistoryState>> {
    let mut states = Vec::new();
    let mut newer: Option<model::Snapshot> = None;
    for publication in current.publications() {
        let snapshot = published::snapshot(store, &publication.snapshot).await?;
        if let (Some(newer), Some(HistoryState { changes, .. })) = (&newer, states.last_mut()) {
            let known = snapshot.as_ref();
            *changes = known.map(|older| ChangedPackages::between(Some(older), newer));
        }
        let is_first = publication.serial == 1;
        states.push(HistoryState {
            serial: publication.serial,
            content_hash: publication.content_hash,
            published_at: publication.published_at,
            packages: snapshot.as_ref().map(|snapshot| snapshot.packages.len()),
            changes: snapshot
                .as_ref()
                .filter(|_| is_first)
                .map(|first| ChangedPackages::between(None, first)),
            is_stored: snapshot.is_some(),
            is_published: publication.serial == current.serial,
            is_held_back: publication.serial == current.serial && current.rolled_back.is_some(),
        });
        newer = snapshot;
    }
    Ok(states)
}

/// Publication of a catalog, newest first.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HistoryState {
    serial: u64,
    content_hash: Sha256,
    #[serde(serialize_with = "as_rfc3339")]
    published_at: SystemTime,
    packages: Option<usize>,
    /// Changes since the state before, if that is stored too.
    changes: Option<ChangedPackages>,
    is_stored: bool,
    is_published: bool,
    is_held_back: bool,
}

fn as_rfc3339<S: Serializer>(moment: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time(*moment))
}

impl Table for HistoryState {
    const COLUMNS: &'static [Column<Self>] = &[
        ("SERIAL", |state| state.serial.to_string()),
        ("CONTENT", |state| short(&state.content_hash)),
        ("PUBLISHED", |state| time(state.published_at).to_string()),
        ("PACKAGES", |state| cell(state.packages)),
        ("CHANGED", |state| cell(state.changes.as_ref().map(changes))),
        ("STATE", |state| {
            let text = match (state.is_stored, state.is_published, state.is_held_back) {
                (_, true, true) => "published, rolled back",
                (_, true, false) => "published",
                (true, false, _) => "",
                (false, false, _) => "not stored",
            };
            text.to_owned()
        }),
    ];
}
