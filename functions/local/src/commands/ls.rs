use clap::Args;
use model::{CatalogName, Current, Key, ShardRef, SignedBy, Status, Verified};
use serde::Serialize;
use store::{Store, StoreExt};

use crate::{
    args::{Access, StoreArgs},
    exit::Exit,
    output::{Table, bytes, cell, print, printable, short},
    published, wiring,
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

pub(crate) async fn run(args: LsArgs) -> anyhow::Result<Exit> {
    let store = args.store.open_alone(Access::Read).await?;
    match args.name {
        Some(name) => packages(&*store, &name, args.json).await?,
        None => catalogs(&*store, args.json).await?,
    }
    Ok(Exit::Success)
}

async fn catalogs(store: &dyn Store, json: bool) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for name in wiring::names(store).await? {
        let current = published::current(store, &name).await?;
        let snapshot = match &current {
            Some(current) => published::snapshot(store, &current.snapshot).await?,
            None => None,
        };
        // The status is only information: an unreadable one must not hide the catalog.
        let status = store
            .read_document::<Status>(&Key::Status(name.clone()))
            .await
            .ok()
            .flatten();
        let snapshot = snapshot.as_ref();
        let image = snapshot.and_then(|snapshot| snapshot.image.as_ref());
        rows.push(ListedCatalog {
            name,
            current,
            packages: snapshot.map(|snapshot| snapshot.packages.len()),
            metas: snapshot.map(|snapshot| snapshot.metas),
            size: snapshot.map(|snapshot| snapshot.size),
            image: image.map(|image| format!("sha256:{}", image.index.sha256)),
            status: status.map(|(status, _)| status),
        });
    }
    print(&rows, json)?;
    for row in rows.iter().filter(|_| !json) {
        if let Some(error) = row.status.as_ref().and_then(|status| status.error.as_ref()) {
            println!("{}: {}", row.name, printable(error));
        }
    }
    Ok(())
}

async fn packages(store: &dyn Store, name: &CatalogName, json: bool) -> anyhow::Result<()> {
    let (_, snapshot) = published::state(store, name).await?;
    print(&snapshot.packages, json)
}

/// Catalog of a store and its documents, as far as they exist.
#[derive(Serialize)]
pub(crate) struct ListedCatalog {
    pub(crate) name: CatalogName,
    pub(crate) current: Option<Current>,
    pub(crate) packages: Option<usize>,
    pub(crate) metas: Option<u64>,
    pub(crate) size: Option<u64>,
    /// Digest by which the catalog is pulled as an image.
    pub(crate) image: Option<String>,
    pub(crate) status: Option<Status>,
}

impl Table for ListedCatalog {
    const HEADERS: &'static str =
        "NAME | SERIAL | CONTENT | PACKAGES | SIZE | PUBLISHED | LAST POLL | OUTCOME | SOURCE | SIGNED BY";
    // Most stores have no policies, and the table is wide enough.
    const LAST_IS_OPTIONAL: bool = true;

    fn row(&self) -> Vec<String> {
        let (current, status) = (self.current.as_ref(), self.status.as_ref());
        let time = humantime::format_rfc3339_seconds;
        vec![
            self.name.to_string(),
            cell(current.map(|current| current.serial)),
            cell(current.map(|current| short(&current.content_hash))),
            cell(self.packages),
            cell(self.size.map(bytes)),
            cell(current.map(|current| time(current.published_at))),
            cell(status.map(|status| time(status.last_poll))),
            cell(status.map(|status| status.outcome.as_str())),
            cell(current.map(|current| &current.source.reference)),
            cell(current.and_then(Current::verified).map(signers)),
        ]
    }
}

/// Returns the method of each signature and the first 12 characters of its key.
fn signers(verified: &Verified) -> String {
    let one = |by: &SignedBy| format!("{} {}", by.method, by.key.chars().take(12).collect::<String>());
    verified.by.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Table for ShardRef {
    const HEADERS: &'static str = "PACKAGE | METAS | SIZE | STORED | SHARD";

    fn row(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.metas.to_string(),
            bytes(self.lines.size),
            bytes(self.stored.size),
            short(&self.lines.sha256),
        ]
    }
}
