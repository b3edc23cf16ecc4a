mod forgery;

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::Arc;

use arbitrary::{Arbitrary, Unstructured};
use model::{Current, Document, Key};
use store::{Condition, Store};
use storekit::MemoryStore;
use sync::{Archive, Importer, Pack, PackOptions, SyncError, SyncOptions};

use crate::images::in_memory;
use crate::runtime::run;
use crate::site::{Site, name};
use forgery::{Entries, Forgery, entries};

thread_local! {
    static HONEST: [Entries; 2] = {
        let site = Site::new(&["v1", "v2"]);
        [false, true].map(|whole| entries(&export(&site.store, whole)))
    };
    static OLDER: Site = Site::new(&["v1"]);
}

/// Imports an archive that was forged by a party who knows the format into an empty store, or into
/// one with an older state.
///
/// # Panics
/// As [`volume`], or if a serial goes back.
pub(crate) fn archive(input: &[u8]) {
    let Ok(forgery) = Forgery::arbitrary(&mut Unstructured::new(input)) else {
        return;
    };
    let honest = HONEST.with(|honest| honest[usize::from(forgery.whole)].clone());
    let store = MemoryStore::new();
    if forgery.older {
        for (key, bytes) in OLDER.with(|older| older.store.objects()) {
            let put = store.put(&key, bytes, Condition::Always);
            run(put).expect("memory takes all");
        }
    }
    store.take_log();
    import(&forgery.volume(honest), &store);
}

/// Imports the bytes of an archive unchanged.
///
/// # Panics
/// If the archive is refused after a write, or is accepted and the store does not pass `verify`.
pub(crate) fn volume(input: &[u8]) {
    import(input, &MemoryStore::new());
}

fn open(volume: &[u8]) -> Result<Arc<Archive>, SyncError> {
    run(Archive::open(vec![("the volume".to_owned(), file(volume))]))
}

fn import(volume: &[u8], store: &MemoryStore) {
    let before = serial(store);
    let Ok(archive) = open(volume) else { return };
    let importer = Importer::new(archive, Arc::new(store.clone()), SyncOptions::default());
    if run(importer.run()).is_err() {
        assert!(store.written().is_empty(), "{:?}", store.written());
    }
    for key in store.objects().keys() {
        if let Key::Current(name) = key {
            let found = run(upkeep::verify(store, name)).expect("memory can be read");
            assert!(found.findings.is_empty(), "{:#?} in {name}", found.findings);
        }
    }
    let now = serial(store);
    assert!(now >= before, "{now:?} after {before:?}");
}

fn serial(store: &MemoryStore) -> Option<u64> {
    let current = store.objects().remove(&Key::Current(name()))?;
    Some(
        Current::from_bytes(&current)
            .expect("a sound pointer")
            .serial,
    )
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile_in(in_memory()).expect("a temporary file can be made");
    let written = file.write_all(bytes).and_then(|()| file.rewind());
    written.expect("it can be written");
    file
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
        let pack = Pack::plan(store, &[name()], &options)
            .await
            .expect("a sound store");
        let write = move || {
            let mut bytes = Vec::new();
            pack.write(1, &mut bytes).expect("memory takes all");
            bytes
        };
        tokio::task::spawn_blocking(write)
            .await
            .expect("it is not cancelled")
    })
}
