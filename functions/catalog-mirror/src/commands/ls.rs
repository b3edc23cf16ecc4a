use std::sync::Arc;

use clap::Args;
use model::{CatalogName, Current, Key, ShardRef, Status, Verified};
use serde::Serialize;
use store::{Store, StoreExt};

use crate::args::{Access, StoreArgs};
use crate::published;
use crate::reports::HELD_BACK;
use crate::table::{Column, Table, print};
use terminal::{age, bytes, cell, print_line, printable, short};

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Catalog whose packages are listed, instead of the catalogs.
    #[arg(value_name = "NAME")]
    name: Option<CatalogName>,
}

pub(crate) async fn run(args: LsArgs) -> anyhow::Result<()> {
    let store = args.store.open_alone(Access::Read).await?;
    match args.name {
        Some(name) => {
            let state = published::state(&store, &name).await?;
            print(&published::snapshot(&state).await?.packages, args.json)
        }
        None => catalogs(&store, args.json).await,
    }
}

async fn catalogs(store: &Arc<dyn Store>, json: bool) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for name in publish::catalog_names(&**store).await? {
        // A catalog that was removed meanwhile is not listed.
        let Some(state) = published::find(store, &name).await? else {
            continue;
        };
        let current = state.current().clone();
        // The status is only information: an unreadable one must not hide the catalog.
        let status = store
            .read_document(&Key::Status(name.clone()))
            .await
            .ok()
            .flatten();
        rows.push(ListedCatalog {
            name,
            packages: current.packages,
            metas: current.metas,
            size: current.size,
            image: current
                .image
                .map(|image| format!("sha256:{}", image.digest.sha256)),
            current,
            status: status.map(|(status, _)| status),
        });
    }
    print(&rows, json)?;
    for row in rows.iter().filter(|_| !json) {
        if row.current.rolled_back.is_some() {
            print_line(&format!("{}: {HELD_BACK}", row.name))?;
        }
        if let Some(error) = row.status.as_ref().and_then(|status| status.error.as_ref()) {
            print_line(&format!("{}: {}", row.name, printable(error)))?;
        }
    }
    Ok(())
}

/// Catalog of a store, with its pointer and its status.
#[derive(Serialize)]
pub(crate) struct ListedCatalog {
    name: CatalogName,
    current: Current,
    packages: u64,
    metas: u64,
    size: u64,
    /// Digest by which the catalog is pulled as an image.
    image: Option<String>,
    status: Option<Status>,
}

impl Table for ListedCatalog {
    // What fits a terminal of 80 columns comes first; --json has the rest. Most stores have no
    // policies, so the last column is often left out.
    const COLUMNS: &'static [Column<Self>] = &[
        ("NAME", |row| row.name.to_string()),
        ("CONTENT", |row| short(&row.current.content_hash)),
        ("PACKAGES", |row| row.packages.to_string()),
        ("PUBLISHED", |row| age(row.current.published_at)),
        ("LAST POLL", |row| {
            let status = row.status.as_ref();
            cell(
                status
                    .map(|status| format!("{} {}", status.outcome.as_str(), age(status.last_poll))),
            )
        }),
        ("SOURCE", |row| row.current.source.reference.clone()),
        ("SIGNED BY", |row| cell(row.current.verified().map(signers))),
    ];

    const IS_FAILED: fn(&Self) -> bool = |row| {
        row.status
            .as_ref()
            .is_some_and(|status| !status.outcome.is_success())
    };
}

/// Returns the method of each signature and the first 12 characters of its key.
fn signers(verified: &Verified) -> String {
    let mut signers = Vec::new();
    for by in &verified.by {
        let key: String = by.key.chars().take(12).collect();
        signers.push(format!("{} {key}", by.method));
    }
    signers.join(", ")
}

impl Table for ShardRef {
    const COLUMNS: &'static [Column<Self>] = &[
        ("PACKAGE", |shard| shard.name.clone()),
        ("METAS", |shard| shard.metas.to_string()),
        ("SIZE", |shard| bytes(shard.lines.size)),
        ("STORED", |shard| bytes(shard.stored.size)),
        ("SHARD", |shard| short(&shard.lines.sha256)),
    ];
}
