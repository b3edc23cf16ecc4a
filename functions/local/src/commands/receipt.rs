use std::io::{self, Write};

use config::Config;
use layout::{CatalogName, Document};
use store::Store;

use crate::{cli::Receipt, exit::Exit, wiring};

pub(crate) async fn run(args: Receipt) -> anyhow::Result<Exit> {
    let store = args.store.open_to_read(&Config::default()).await?;
    let bytes = bytes(&*store, args.names).await?;
    io::stdout().write_all(&bytes)?;
    Ok(Exit::Fine)
}

pub(super) async fn bytes(store: &dyn Store, names: Vec<CatalogName>) -> anyhow::Result<Vec<u8>> {
    let names = chosen(store, names).await?;
    Ok(sync::receipt(store, &names).await?.to_bytes())
}

/// The names of the command line, else all of the store.
pub(super) async fn chosen(store: &dyn Store, names: Vec<CatalogName>) -> anyhow::Result<Vec<CatalogName>> {
    if names.is_empty() {
        Ok(wiring::names(store).await?.into_iter().collect())
    } else {
        Ok(names)
    }
}
