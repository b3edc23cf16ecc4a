//! Checks that every command that reads a whole store goes on, whatever the faults have left.

use std::{collections::BTreeSet, error::Error, sync::Arc};

use ::reader::{PublishedCatalogs, ReaderSettings};
use model::{CatalogName, Key, text::chain};
use store::Store;
use storekit::MemoryStore;
use sync::{Copier, Origin, Pack, PackOptions, SyncOptions};

use crate::observed::ObservedStore;

/// Lists, exports, verifies, serves and copies the whole store. None may fail. The collection that
/// follows reads it too.
///
/// # Errors
/// The error of a command, or that it reads other catalogs than those with a pointer.
pub(crate) async fn read_everything(observed: &ObservedStore) -> Result<(), String> {
    let published = observed.pointers().into_keys().collect();
    let read = read_published(Arc::new(observed.store.clone()), &published).await;
    read.map_err(|error| format!("a command on the {:?}: {}", observed.side, chain(&*error)))
}

async fn read_published(
    store: Arc<dyn Store>,
    published: &BTreeSet<CatalogName>,
) -> Result<(), Box<dyn Error>> {
    let listed = publish::catalog_names(&*store).await?;
    let names: Vec<CatalogName> = listed.iter().cloned().collect();
    Pack::plan(store.clone(), &names, &PackOptions::default()).await?;
    for name in &names {
        let verified = upkeep::verify(&*store, name).await?;
        let pointer = Key::Current(name.clone());
        if let Some(finding) = verified
            .findings
            .iter()
            .find(|finding| finding.key == pointer)
        {
            return Err(format!("verify: {pointer} {}", finding.problem).into());
        }
    }
    let served = PublishedCatalogs::new(store.clone(), ReaderSettings::default());
    if listed != *published || served.all().await?.len() != published.len() {
        return Err(format!("{listed:?} is listed, and {published:?} is published").into());
    }
    let options = SyncOptions {
        fetch_all: true,
        ..SyncOptions::default()
    };
    let origin = Origin::Store(store.clone());
    let copier = Copier::new(origin, Arc::new(MemoryStore::new()), options);
    let copies = copier.copy_listed().await?;
    if let Some(error) = copies.into_iter().find_map(|report| report.error) {
        return Err(error.into());
    }
    Ok(())
}
