use std::collections::HashMap;
use std::sync::Arc;

use clap::Args;
use inspect::published;
use model::{CatalogName, Current, Facts, Key, SearchPackage, ShardRef, Status, Verified};
use olm::SEARCH;
use serde::Serialize;
use store::{Store, StoreExt, read_stored};

use crate::args::{Access, StoreArgs};
use crate::reports::words;
use crate::table::{Column, Table, print};
use terminal::{age, bytes, cell, print_line, print_text, printable, short, wrapped};
use upkeep::CatalogDelay;

#[derive(Debug, Args)]
#[command(after_help = "\
Of a catalog, VERSION is the one at the head of the default channel, which is CHANNEL. --json has the hashes. \
Below the catalogs stand the dates of content that is held back, and of rings.")]
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
        Some(name) => print(&packages(&store, &name).await?, args.json),
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
        let status = status.map(|(status, _)| status);
        rows.push(ListedCatalog {
            name,
            delay: CatalogDelay::of(&current, status.as_ref()),
            packages: current.packages,
            metas: current.metas,
            size: current.size,
            image: current
                .image
                .map(|image| format!("sha256:{}", image.digest.sha256)),
            current,
            status,
        });
    }
    print(&rows, json)?;
    for row in rows.iter().filter(|_| !json) {
        for line in row.delay.lines() {
            print_text(&wrapped(&format!("{}: {line}", row.name)))?;
        }
        if let Some(error) = row.status.as_ref().and_then(|status| status.error.as_ref()) {
            print_line(&format!("{}: {}", row.name, printable(error)))?;
        }
    }
    Ok(())
}

/// Reads the packages of a catalog.
async fn packages(
    store: &Arc<dyn Store>,
    name: &CatalogName,
) -> anyhow::Result<Vec<ListedPackage>> {
    let state = published::state(store, name).await?;
    let snapshot = published::snapshot(&state).await?;
    // A catalog of an older program may lack the document, and then the versions are not known.
    let facts: Facts<SearchPackage> = match snapshot.facts.get(SEARCH.name) {
        Some(texts) => read_stored(&**store, texts).await?,
        None => Facts::new(SEARCH.version),
    };
    let known: HashMap<&String, &SearchPackage> = facts.parts().collect();
    let packages = snapshot.packages.iter().map(|shard| {
        let texts = known.get(&shard.name);
        ListedPackage {
            shard: shard.clone(),
            version: texts.map(|texts| texts.version.clone()),
            default_channel: texts.map(|texts| texts.channel.clone()),
        }
    });
    Ok(packages.collect())
}

/// Package of a catalog, with the version at the head of its default channel.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedPackage {
    #[serde(flatten)]
    shard: ShardRef,
    version: Option<String>,
    default_channel: Option<String>,
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
    #[serde(flatten)]
    delay: CatalogDelay,
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
                    .map(|status| format!("{}, {}", words(status.outcome), age(status.last_poll))),
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

impl Table for ListedPackage {
    const COLUMNS: &'static [Column<Self>] = &[
        ("PACKAGE", |package| package.shard.name.clone()),
        ("VERSION", |package| cell(package.version.as_ref())),
        ("CHANNEL", |package| cell(package.default_channel.as_ref())),
        ("SIZE", |package| bytes(package.shard.lines.size)),
        ("STORED", |package| bytes(package.shard.stored.size)),
    ];
}
