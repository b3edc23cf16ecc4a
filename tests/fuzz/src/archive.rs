mod forgery;

use std::{
    cell::RefCell,
    fs::File,
    io::{Seek, Write},
    sync::Arc,
};

use arbitrary::{Arbitrary, Unstructured};
use bytes::Bytes;
use model::{CatalogName, Current, Document, Key};
use store::Store;
use storekit::MemoryStore;
use sync::{Archive, Importer, Pack, PackOptions, SyncError, SyncOptions};

use crate::{
    runtime::run,
    site::{Site, name},
};
use forgery::{Entries, Forgery, entries};

thread_local! {
    static HONEST: [Entries; 2] = {
        let site = Site::new(&["v1", "v2"]);
        [false, true].map(|whole| entries(&export(&site.store, whole)))
    };
    /// A store without the catalog, and one with an older state.
    static STORES: RefCell<[MemoryStore; 2]> = RefCell::new([MemoryStore::new(), Site::new(&["v1"]).store]);
}

/// Imports an archive that was forged by a party who knows the format. It must be refused before anything is written, or
/// leave a store that passes `verify`.
///
/// # Panics
/// If neither is the case.
pub(crate) fn archive(input: &[u8]) {
    let Ok(forgery) = Forgery::arbitrary(&mut Unstructured::new(input)) else {
        return;
    };
    let honest = HONEST.with(|honest| honest[usize::from(forgery.whole)].clone());
    let volume = forgery.volume(honest);
    let before = STORES.with_borrow(|stores| stores[usize::from(forgery.older)].objects());
    let store = MemoryStore::new();
    before.iter().for_each(|(key, bytes)| put(&store, key, bytes));
    store.take_log();
    import(&volume, &store);
    check(&store, before.get(&Key::Current(name())));
}

/// Imports the bytes of an archive unchanged.
///
/// # Panics
/// If the archive is accepted and the store does not pass `verify`.
pub(crate) fn volume(input: &[u8]) {
    let store = MemoryStore::new();
    import(input, &store);
    check(&store, None);
}

fn open(volume: &[u8]) -> Result<Arc<Archive>, SyncError> {
    run(Archive::open(vec![("the volume".to_owned(), file(volume))]))
}

fn import(volume: &[u8], store: &MemoryStore) {
    let Ok(archive) = open(volume) else { return };
    let importer = Importer::new(archive, Arc::new(store.clone()), SyncOptions::default());
    if run(importer.run()).is_err() {
        assert!(store.written().is_empty(), "{:?}", store.written());
    }
}

/// Checks that every catalog is complete and that no serial has gone back.
fn check(store: &MemoryStore, before: Option<&Bytes>) {
    let objects = store.objects();
    for (key, bytes) in &objects {
        if let Key::Current(name) = key {
            check_catalog(store, name, bytes);
        }
    }
    let serial = |bytes: &Bytes| Current::from_bytes(bytes).expect("a sound pointer").serial;
    let (then, now) = (before.map(serial), objects.get(&Key::Current(name())).map(serial));
    assert!(now >= then, "{now:?} after {then:?}");
}

fn check_catalog(store: &MemoryStore, name: &CatalogName, bytes: &Bytes) {
    let found = run(upkeep::verify(store, name)).expect("memory can be read");
    assert!(
        found.findings.is_empty(),
        "{:#?} in {}",
        found.findings,
        String::from_utf8_lossy(bytes)
    );
}

fn put(store: &MemoryStore, key: &Key, bytes: &Bytes) {
    let put = store.put(key, bytes.clone(), store::Condition::Always);
    run(put).expect("memory takes all");
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile_in("/dev/shm").or_else(|_| tempfile::tempfile());
    let file = file.as_mut().expect("a temporary file can be made");
    file.write_all(bytes)
        .and_then(|()| file.rewind())
        .expect("it can be written");
    file.try_clone().expect("it can be opened twice")
}

/// Exports the catalog as an archive of one volume.
#[expect(clippy::disallowed_methods, reason = "the store is one of the target")]
pub(crate) fn export(store: &MemoryStore, whole: bool) -> Vec<u8> {
    let store: Arc<dyn Store> = Arc::new(store.clone());
    let options = PackOptions {
        whole,
        ..PackOptions::default()
    };
    run(async {
        let pack = Pack::plan(store, &[name()], &options).await.expect("a sound store");
        let write = move || {
            let mut bytes = Vec::new();
            pack.write(1, &mut bytes).expect("memory takes all");
            bytes
        };
        tokio::task::spawn_blocking(write).await.expect("it is not cancelled")
    })
}
