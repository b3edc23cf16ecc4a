use std::io::{self, Write};

use model::{CatalogName, Document};
use store::Store;

use crate::{cli::ReceiptArgs, exit::Exit, published, stores::Access};

pub(crate) async fn run(args: ReceiptArgs) -> anyhow::Result<Exit> {
    let store = args.store.open_alone(Access::Read).await?;
    let bytes = bytes(&*store, &args.names).await?;
    io::stdout().write_all(&bytes)?;
    Ok(Exit::Success)
}

/// Returns the receipt of the named catalogs, or of all.
pub(super) async fn bytes(store: &dyn Store, names: &[CatalogName]) -> anyhow::Result<Vec<u8>> {
    let names: Vec<_> = published::names_or_all(store, names).await?.into_iter().collect();
    Ok(sync::receipt(store, &names).await?.to_bytes())
}
