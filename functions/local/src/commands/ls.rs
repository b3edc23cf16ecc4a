use model::{CatalogName, Key, Status};
use store::{Store, StoreExt};

use crate::{
    cli::LsArgs,
    exit::Exit,
    output::{self, catalogs::CatalogRow},
    published,
    stores::Access,
    wiring,
};

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
        rows.push(CatalogRow {
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
