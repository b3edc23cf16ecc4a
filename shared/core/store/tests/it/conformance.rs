//! The suite on both stores of this crate.

use std::sync::{Arc, Mutex};

use store::{FolderStore, Store};
use storekit::MemoryStore;
use storekit::conformance::{Exceptions, conformance};

#[tokio::test(flavor = "multi_thread")]
async fn folder_store_passes_conformance() {
    let folders = Mutex::new(Vec::new());
    let make = async || {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path()).unwrap();
        folders.lock().unwrap().push(folder);
        Arc::new(store) as Arc<dyn Store>
    };
    conformance(make, Exceptions::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_store_passes_conformance() {
    let make = async || Arc::new(MemoryStore::new()) as Arc<dyn Store>;
    conformance(make, Exceptions::default()).await;
}
