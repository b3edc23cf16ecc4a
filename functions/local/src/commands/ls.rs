use model::{CatalogName, Key, Status};
use store::{Store, StoreExt};

use crate::{
    cli::LsArgs,
    exit::Exit,
    output::{
        self,
        store::{ListedCatalog, print_catalogs},
    },
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
    print_catalogs(&rows, json)
}

async fn packages(store: &dyn Store, name: &CatalogName, json: bool) -> anyhow::Result<()> {
    let (_, snapshot) = published::state(store, name).await?;
    output::print(&snapshot.packages, json)
}
