use config::Config;
use layout::{CatalogName, Key, Status};
use store::{Store, StoreExt};

use crate::{
    cli::Ls,
    exit::Exit,
    output::{self, catalogs::Row},
    published, wiring,
};

pub(crate) async fn run(args: Ls) -> anyhow::Result<Exit> {
    let store = args.store.open_to_read(&Config::default()).await?;
    match args.name {
        Some(name) => packages(&*store, &name, args.json).await?,
        None => catalogs(&*store, args.json).await?,
    }
    Ok(Exit::Fine)
}

async fn catalogs(store: &dyn Store, json: bool) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for name in wiring::names(store).await? {
        let current = published::current(store, &name).await?;
        let snapshot = match &current {
            Some(current) => published::snapshot(store, &name, current.content_hash).await?,
            None => None,
        };
        let status = store
            .read_document::<Status>(&Key::Status(name.clone()))
            .await
            .ok()
            .flatten();
        rows.push(Row {
            name,
            current,
            snapshot,
            status: status.map(|(status, _)| status),
        });
    }
    if json {
        output::catalogs::json(&rows)
    } else {
        output::catalogs::table(&rows)
    }
}

async fn packages(store: &dyn Store, name: &CatalogName, json: bool) -> anyhow::Result<()> {
    let (_, snapshot) = published::state(store, name).await?;
    if json {
        output::catalogs::packages_json(&snapshot)
    } else {
        output::catalogs::packages_table(&snapshot)
    }
}
