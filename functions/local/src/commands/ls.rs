use anyhow::Context;
use config::Config;
use layout::{CatalogName, Current, Key, Snapshot, Status};
use store::{Store, StoreExt};

use crate::{
    cli::Ls,
    exit::Exit,
    output::{self, catalogs::Row},
    wiring,
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
        let current = current(store, &name).await?;
        let snapshot = match &current {
            Some(current) => snapshot(store, &name, current).await?,
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
    let current = current(store, name)
        .await?
        .with_context(|| format!("the store has no catalog {name}"))?;
    let snapshot = snapshot(store, name, &current).await?;
    let snapshot =
        snapshot.with_context(|| format!("the snapshot of {name} is missing; see `catalog-mirror verify`"))?;
    if json {
        output::catalogs::packages_json(&snapshot)
    } else {
        output::catalogs::packages_table(&snapshot)
    }
}

async fn current(store: &dyn Store, name: &CatalogName) -> anyhow::Result<Option<Current>> {
    Ok(store
        .read_document(&Key::Current(name.clone()))
        .await?
        .map(|(current, _)| current))
}

async fn snapshot(store: &dyn Store, name: &CatalogName, current: &Current) -> anyhow::Result<Option<Snapshot>> {
    let key = Key::Snapshot(name.clone(), current.content_hash);
    Ok(store.read_document(&key).await?.map(|(snapshot, _)| snapshot))
}
