use clap::Args;
use model::{CatalogName, Current, Key, ShardRef, SignedBy, Status, Verified};
use serde::Serialize;
use store::{Store, StoreExt};

use super::history::HELD_BACK;
use crate::{
    args::{Access, StoreArgs},
    output::{Column, Table, age, bytes, cell, print, printable, short},
    published,
};

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Catalog whose packages are listed, instead of the catalogs.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<CatalogName>,
}

pub(crate) async fn run(args: LsArgs) -> anyhow::Result<()> {
    let store = args.store.open_alone(Access::Read).await?;
    match args.name {
        Some(name) => print(&published::state(&*store, &name).await?.1.packages, args.json),
        None => catalogs(&*store, args.json).await,
    }
}

async fn catalogs(store: &dyn Store, json: bool) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for name in publish::catalog_names(store).await? {
        let current = published::current(store, &name).await?;
        // The status is only information: an unreadable one must not hide the catalog.
        let status = store.read_document(&Key::Status(name.clone())).await.ok().flatten();
        let published = current.as_ref();
        rows.push(ListedCatalog {
            name,
            packages: published.map(|current| current.packages),
            metas: published.map(|current| current.metas),
            size: published.map(|current| current.size),
            image: published.and_then(|current| Some(format!("sha256:{}", current.image?.digest.sha256))),
            current,
            status: status.map(|(status, _)| status),
        });
    }
    print(&rows, json)?;
    for row in rows.iter().filter(|_| !json) {
        let current = row.current.as_ref();
        if current.is_some_and(|current| current.rolled_back.is_some()) {
            println!("{}: {HELD_BACK}", row.name);
        }
        if let Some(error) = row.status.as_ref().and_then(|status| status.error.as_ref()) {
            println!("{}: {}", row.name, printable(error));
        }
    }
    Ok(())
}

/// Catalog of a store and its documents, as far as they exist.
#[derive(Serialize)]
pub(crate) struct ListedCatalog {
    pub(crate) name: CatalogName,
    pub(crate) current: Option<Current>,
    pub(crate) packages: Option<u64>,
    pub(crate) metas: Option<u64>,
    pub(crate) size: Option<u64>,
    /// Digest by which the catalog is pulled as an image.
    pub(crate) image: Option<String>,
    pub(crate) status: Option<Status>,
}

impl ListedCatalog {
    /// Returns a value of the pointer, or an empty cell.
    fn of_current<T: ToString>(&self, value: fn(&Current) -> T) -> String {
        cell(self.current.as_ref().map(value))
    }
}

impl Table for ListedCatalog {
    // What fits a terminal of 80 columns comes first; --json has the rest. Most stores have no policies, so the last column is often
    // left out.
    const COLUMNS: &'static [Column<Self>] = &[
        ("NAME", |row| row.name.to_string()),
        ("CONTENT", |row| row.of_current(|current| short(&current.content_hash))),
        ("PACKAGES", |row| cell(row.packages)),
        ("PUBLISHED", |row| row.of_current(|current| age(current.published_at))),
        ("LAST POLL", |row| {
            let status = row.status.as_ref();
            cell(status.map(|status| format!("{} {}", status.outcome.as_str(), age(status.last_poll))))
        }),
        ("SOURCE", |row| row.of_current(|state| state.source.reference.clone())),
        ("SIGNED BY", |row| {
            cell(row.current.as_ref().and_then(Current::verified).map(signers))
        }),
    ];

    fn is_failed(&self) -> bool {
        self.status.as_ref().is_some_and(|status| !status.outcome.is_success())
    }
}

/// Returns the method of each signature and the first 12 characters of its key.
fn signers(verified: &Verified) -> String {
    let one = |by: &SignedBy| format!("{} {}", by.method, by.key.chars().take(12).collect::<String>());
    verified.by.iter().map(one).collect::<Vec<_>>().join(", ")
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
