//! Checks that every command that reads a whole store goes on, whatever the faults have left.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;

use ::reader::{PublishedCatalogs, ReaderSettings};
use bytes::Bytes;
use model::{CatalogName, Current, Document as _, Key, text::chain};
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
    let read = read_published(Arc::new(observed.store.clone()), &observed.pointers()).await;
    read.map_err(|error| format!("a command on the {:?}: {}", observed.side, chain(&*error)))
}

async fn read_published(
    store: Arc<dyn Store>,
    pointers: &BTreeMap<CatalogName, Bytes>,
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
    let published: BTreeSet<CatalogName> = pointers.keys().cloned().collect();
    if listed != published {
        return Err(format!("{listed:?} is listed, and {published:?} is published").into());
    }
    let mut available = BTreeSet::new();
    for (name, pointer) in pointers {
        // A ring whose first state is not old enough serves nothing.
        if Current::from_bytes(pointer)?.availability.is_available() {
            available.insert(name.clone());
        }
    }
    if served.all().await?.len() != available.len() {
        return Err(format!("{available:?} is available, and not all of it is served").into());
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
