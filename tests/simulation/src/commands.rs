//! Checks that every command that reads a whole store goes on, whatever the faults have left.

use std::{collections::BTreeSet, sync::Arc};

use ::reader::{PublishedCatalogs, ReaderSettings};
use model::{CatalogName, Key, text::chain};
use store::Store;
use storekit::MemoryStore;
use sync::{Copier, Pack, PackOptions, StoreOrigin, SyncOptions};
use upkeep::GcOptions;

use crate::observed::ObservedStore;

/// Lists, exports, verifies, serves and copies the whole store, and looks for garbage. None may fail.
///
/// # Errors
/// The command that fails, or that reads other catalogs than those with a pointer.
pub(crate) async fn read_everything(observed: &ObservedStore) -> Result<(), String> {
    let store: Arc<dyn Store> = Arc::new(observed.store.clone());
    let published = published(observed);
    let told =
        |command, error: &dyn std::error::Error| format!("{command} of the {:?}: {}", observed.side, chain(error));
    let listed = publish::catalog_names(&*store)
        .await
        .map_err(|error| told("ls", &error))?;
    let names: Vec<CatalogName> = listed.iter().cloned().collect();
    Pack::plan(store.clone(), &names, &PackOptions::default())
        .await
        .map_err(|error| told("export", &error))?;
    for name in &names {
        let verified = upkeep::verify(&*store, name)
            .await
            .map_err(|error| told("verify", &error))?;
        let pointer = Key::Current(name.clone());
        if let Some(finding) = verified.findings.iter().find(|finding| finding.key == pointer) {
            return Err(format!(
                "verify of the {:?}: {pointer} {}",
                observed.side, finding.problem
            ));
        }
    }
    let served = PublishedCatalogs::new(store.clone(), ReaderSettings::default());
    let served = served.all().await.map_err(|error| told("serve", &error))?;
    if listed != published || served.len() != published.len() {
        return Err(format!(
            "{listed:?} of the {:?} is listed, and {published:?} is published",
            observed.side
        ));
    }
    let options = SyncOptions {
        fetch_all: true,
        ..SyncOptions::default()
    };
    let copier = Copier::new(
        Arc::new(StoreOrigin(store.clone())),
        Arc::new(MemoryStore::new()),
        options,
    );
    let copies = copier.copy_listed().await.map_err(|error| told("sync", &error))?;
    if let Some(error) = copies.iter().find_map(|report| report.error.as_ref()) {
        return Err(format!("sync: {error}"));
    }
    let options = GcOptions {
        dry_run: true,
        ..GcOptions::default()
    };
    upkeep::gc(&*store, &options)
        .await
        .map_err(|error| told("gc", &error))?;
    Ok(())
}

/// Returns the catalogs that have a pointer.
pub(crate) fn published(observed: &ObservedStore) -> BTreeSet<CatalogName> {
    let keys = observed.store.objects().into_keys();
    let names = keys.filter_map(|key| match key {
        Key::Current(name) => Some(name),
        _ => None,
    });
    names.collect()
}
