use layout::{CatalogName, Catalogs, Key};
use store::{Store, StoreExt};

use crate::{cli::Verify, config::Config, exit::Exit, output};

pub(crate) async fn run(args: Verify) -> anyhow::Result<Exit> {
    let store = args.store.open_to_read(&Config::default())?;
    let names = if args.names.is_empty() {
        all(&*store).await?
    } else {
        args.names
    };
    let mut results = Vec::new();
    for name in names {
        let verification = keep::verify(&*store, &name).await?;
        results.push((name, verification));
    }
    if args.json {
        output::verifications::json(&results)?;
    } else {
        output::verifications::table(&results)?;
    }
    let sound = results.iter().all(|(_, verification)| verification.findings.is_empty());
    Ok(if sound { Exit::Fine } else { Exit::Failed })
}

async fn all(store: &dyn Store) -> anyhow::Result<Vec<CatalogName>> {
    let names = store.read_document::<Catalogs>(&Key::Catalogs).await?;
    Ok(names
        .map(|(names, _)| names.catalogs.into_iter().collect())
        .unwrap_or_default())
}
