//! The suite on both stores of this crate.

use std::sync::{Arc, Mutex};

use store::{
    FolderStore, MemoryStore, Store,
    conformance::{conformance, held_readers},
};

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_keeps_every_promise() {
    let folders = Mutex::new(Vec::new());
    let make = async || {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path()).unwrap();
        folders.lock().unwrap().push(folder);
        Arc::new(store) as Arc<dyn Store>
    };
    conformance(&make).await;
    held_readers(&make).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_keeps_every_promise() {
    let make = async || Arc::new(MemoryStore::new()) as Arc<dyn Store>;
    conformance(&make).await;
    held_readers(&make).await;
}
