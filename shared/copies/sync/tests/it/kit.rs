//! A mirror in memory, published as a poll publishes.

use std::{collections::BTreeMap, fs, sync::Arc, time::SystemTime};

use model::{
    CatalogImage, CatalogName, Catalogs, Current, Document, Encoding, Facts, Key, Kind,
    ManifestEntry, ObjectDigest, Outcome, PackageFindings, Sha256, Snapshot, StoredDocument,
};
use oci::Documents;
use olm::FINDINGS;
use publish::{
    Catalog, Env, Mirror, MirrorSettings, PollMetrics, PollOptions, Report, ValidationMode,
};
use source::{Source, SourceSettings, Sources};
use store::{Condition, Store, StoreExt};
use storekit::MemoryStore;
use sync::{Copier, Origin, SyncOptions, SyncReport};
use testkit::{CurrentBuilder, first_published_at};

pub(crate) fn name() -> CatalogName {
    "demo".parse().unwrap()
}

pub(crate) fn options(rebuild: bool) -> SyncOptions {
    SyncOptions {
        fetch_all: !rebuild,
        source: "test".into(),
        ..SyncOptions::default()
    }
}

/// Packages and their number of bundles.
pub(crate) type Packages<'a> = &'a [(&'a str, usize)];

/// Number of objects that follow from the Shards: three encodings of `all.json`, the index, the
/// facts for the search, and the image with its layer, four manifests, four configurations and the
/// index over them.
pub(crate) const DERIVED: u64 = 3 + 1 + 1 + 10;

/// Kinds of objects that are decoded before they are written.
pub(crate) const DECODED: [Kind; 4] = [
    Kind::All(Encoding::Zstd),
    Kind::All(Encoding::Gzip),
    Kind::All(Encoding::Identity),
    Kind::Blob,
];

pub(crate) const V1: Packages<'_> = &[("cache", 3), ("database", 40), ("queue", 5), ("search", 2)];
pub(crate) const V2: Packages<'_> = &[("cache", 3), ("database", 41), ("queue", 5), ("vault", 2)];

/// Publishes the packages under the next serial, without findings.
pub(crate) async fn publish(store: &Arc<dyn Store>, name: &CatalogName, packages: Packages<'_>) {
    poll(store, name, packages, ValidationMode::Off).await;
}

/// Polls a folder with these packages. All polls are at the same time.
pub(crate) async fn poll(
    store: &Arc<dyn Store>,
    name: &CatalogName,
    packages: Packages<'_>,
    validation: ValidationMode,
) -> Report {
    poll_at(store, name, packages, validation, first_published_at()).await
}

/// Polls a folder with these packages at a time.
pub(crate) async fn poll_at(
    store: &Arc<dyn Store>,
    name: &CatalogName,
    packages: Packages<'_>,
    validation: ValidationMode,
    time: SystemTime,
) -> Report {
    let folder = tempfile::tempdir().unwrap();
    for (package, bundles) in packages {
        let bundles = (0..*bundles).map(|bundle| {
            format!("---\nschema: olm.bundle\nname: {package}.v{bundle}\npackage: {package}\n")
        });
        let text = format!(
            "schema: olm.package\nname: {package}\n{}",
            bundles.collect::<String>()
        );
        fs::write(folder.path().join(format!("{package}.yaml")), text).unwrap();
    }
    let settings = MirrorSettings {
        identity: true,
        env: Env {
            clock: Arc::new(move || time),
            ..Env::default()
        },
        ..MirrorSettings::default()
    };
    let sources = Sources::new(SourceSettings::default()).unwrap();
    let catalog = Catalog {
        validation,
        ..Catalog::new(name.clone(), Source::Dir(folder.path().to_owned()))
    };
    let options = PollOptions {
        accept_gone: true,
        ..PollOptions::default()
    };
    let mirror = Mirror::new(sources, store.clone(), settings, PollMetrics::default());
    let report = mirror.poll(&catalog, options).await;
    assert_eq!(report.outcome, Outcome::Published, "{:?}", report.error);
    report
}

/// Writes a pointer and lists its name.
pub(crate) async fn write_pointer(store: &Arc<dyn Store>, name: &CatalogName, current: &Current) {
    let catalogs = store
        .read_document::<Catalogs>(&Key::Catalogs)
        .await
        .unwrap();
    let mut catalogs = catalogs.map(|(catalogs, _)| catalogs).unwrap_or_default();
    catalogs.add(name);
    put_raw(store, &Key::Catalogs, catalogs.to_bytes()).await;
    put_raw(store, &Key::Current(name.clone()), current.to_bytes()).await;
}

/// Puts the image around a layer whose tar archive has the hash `diff_id`.
pub(crate) async fn put_image(
    store: &Arc<dyn Store>,
    layer: Vec<u8>,
    diff_id: Sha256,
) -> CatalogImage {
    let layer = put(store, Kind::Blob, layer).await;
    let documents = Documents::new(layer, diff_id);
    let image = documents.image(layer, diff_id);
    for bytes in documents.into_all() {
        put(store, Kind::Blob, bytes).await;
    }
    image
}

/// Puts an object under the hash of its bytes.
pub(crate) async fn put(store: &Arc<dyn Store>, kind: Kind, bytes: Vec<u8>) -> ObjectDigest {
    let digest = ObjectDigest::of(&bytes);
    put_raw(store, &digest.with_kind(kind).key(), bytes).await;
    digest
}

/// Puts any bytes under any key.
pub(crate) async fn put_raw(store: &Arc<dyn Store>, key: &Key, bytes: Vec<u8>) {
    store
        .put(key, bytes.into(), Condition::Always)
        .await
        .unwrap();
}

/// Returns a store with the versions published one after the other.
pub(crate) async fn mirror(versions: &[Packages<'_>]) -> (MemoryStore, Arc<dyn Store>) {
    let memory = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(memory.clone());
    for packages in versions {
        publish(&store, &name(), packages).await;
    }
    (memory, store)
}

pub(crate) fn copier(from: &Arc<dyn Store>, to: &Arc<dyn Store>, options: SyncOptions) -> Copier {
    Copier::new(Origin::Store(from.clone()), to.clone(), options)
}

/// Copies the catalog from store to store.
pub(crate) async fn copy(
    from: &Arc<dyn Store>,
    to: &Arc<dyn Store>,
    options: SyncOptions,
) -> SyncReport {
    copy_one(&copier(from, to, options)).await
}

pub(crate) async fn copy_one(copier: &Copier) -> SyncReport {
    copier.copy_all(&[name()]).await.remove(0)
}

/// Copies the catalog into a new store.
pub(crate) async fn copied(
    from: &Arc<dyn Store>,
    options: SyncOptions,
) -> (MemoryStore, SyncReport) {
    let (memory, to) = mirror(&[]).await;
    let report = copy(from, &to, options).await;
    (memory, report)
}

/// Copies the catalog into a new store, which fails and publishes nothing. Returns the store and
/// the error.
pub(crate) async fn failed_copy(from: &Arc<dyn Store>, rebuild: bool) -> (MemoryStore, String) {
    let (memory, report) = copied(from, options(rebuild)).await;
    assert_eq!(report.outcome, Outcome::Failed, "{report:?}");
    assert!(!memory.objects().contains_key(&Key::Current(name())));
    (memory, report.error.unwrap())
}

pub(crate) async fn current(store: &Arc<dyn Store>, name: &CatalogName) -> Option<Current> {
    let key = Key::Current(name.clone());
    let read = store.read_document(&key).await.unwrap();
    read.map(|(current, _)| current)
}

pub(crate) async fn snapshot(store: &Arc<dyn Store>) -> Snapshot {
    snapshot_of(store, &name()).await
}

pub(crate) async fn snapshot_of(store: &Arc<dyn Store>, name: &CatalogName) -> Snapshot {
    let current = current(store, name).await.unwrap();
    store::read_stored(&**store, &current.snapshot.digest)
        .await
        .unwrap()
}

/// Adds findings of another program to the published Snapshot, with one error.
pub(crate) async fn add_findings(store: &Arc<dyn Store>) {
    let mut package = PackageFindings::default();
    package.counts.errors = 1;
    let mut facts = Facts::new(1);
    facts.packages.insert("cache".to_owned(), package);
    let stored = put(store, Kind::Facts, facts.to_stored().unwrap()).await;
    let findings = [(FINDINGS.name.to_owned(), stored)];
    republish(store, |snapshot| snapshot.facts.extend(findings)).await;
}

/// Changes the Snapshot that the published pointer names, as if it had been published so.
pub(crate) async fn republish(store: &Arc<dyn Store>, change: impl FnOnce(&mut Snapshot)) {
    let mut changed = snapshot(store).await;
    change(&mut changed);
    republish_stored(store, &changed, changed.to_stored().unwrap()).await;
}

/// Changes a bit of the layer of the image or of an encoding of `all.json`, as if the object had
/// been published so: its bytes fit its key, and do not decode. Returns the key.
pub(crate) async fn publish_broken(store: &Arc<dyn Store>, kind: Kind) -> Key {
    let mut broken = snapshot(store).await;
    let Kind::All(encoding) = kind else {
        let image = broken.image.unwrap();
        let bytes = flipped(store, image.layer.with_kind(kind).key()).await;
        let image = put_image(store, bytes, image.diff_id).await;
        let key = image.layer.with_kind(kind).key();
        republish(store, |snapshot| snapshot.image = Some(image)).await;
        return key;
    };
    let object = broken.all.get(encoding).unwrap();
    let bytes = flipped(store, object.with_kind(kind).key()).await;
    let stored = put(store, kind, bytes).await;
    match encoding {
        Encoding::Zstd => broken.all.zstd = stored,
        Encoding::Gzip => broken.all.gzip = stored,
        Encoding::Identity => broken.all.identity = Some(stored),
    }
    republish(store, |snapshot| snapshot.all = broken.all).await;
    stored.with_kind(kind).key()
}

async fn flipped(store: &Arc<dyn Store>, key: Key) -> Vec<u8> {
    let (bytes, _) = store.read_all(&key, 1 << 20).await.unwrap();
    let mut bytes = bytes.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    bytes
}

/// Names a Snapshot in the published pointer that is stored with these bytes.
pub(crate) async fn republish_stored(store: &Arc<dyn Store>, changed: &Snapshot, bytes: Vec<u8>) {
    let stored = put(store, Kind::Snapshot, bytes).await;
    let before = current(store, &name()).await.unwrap();
    let next = CurrentBuilder::new(changed)
        .stored_snapshot(stored)
        .serial(before.serial)
        .previous(before.previous)
        .build();
    write_pointer(store, &name(), &next).await;
}

/// Writes the index of the published image as another version of this program might, and returns
/// its key.
pub(crate) async fn remake_image_index(store: &Arc<dyn Store>) -> Key {
    let image = snapshot(store).await.image.unwrap();
    let mut bytes = Documents::new(image.layer, image.diff_id).index;
    bytes.push(b'\n');
    let index = put(store, Kind::Blob, bytes).await;
    republish(store, |snapshot| {
        snapshot.image.as_mut().unwrap().index = index;
    })
    .await;
    index.with_kind(Kind::Blob).key()
}

/// Returns the objects on which readers depend: the documents and what the published state names.
/// Of `catalogs.json` only the names, because its serial counts the writes of one store.
pub(crate) async fn published(memory: &MemoryStore) -> BTreeMap<Key, bytes::Bytes> {
    let store: Arc<dyn Store> = Arc::new(memory.clone());
    let objects = memory.objects();
    let Some(current) = objects.get(&Key::Current(name())) else {
        return BTreeMap::new();
    };
    let current = Current::from_bytes(current).unwrap();
    let names = Catalogs::from_bytes(&objects[&Key::Catalogs]).unwrap();
    let mut keys = vec![Key::Current(name()), current.snapshot.key()];
    keys.extend(
        snapshot(&store)
            .await
            .objects()
            .iter()
            .map(ManifestEntry::key),
    );
    let stored = |key: Key| (key.clone(), objects[&key].clone());
    let mut found: BTreeMap<_, _> = keys.into_iter().map(stored).collect();
    found.insert(Key::Catalogs, format!("{:?}", names.catalogs).into());
    found
}

/// Verifies the catalog, if the store has it.
pub(crate) async fn assert_sound(memory: &MemoryStore) {
    let store: Arc<dyn Store> = Arc::new(memory.clone());
    if memory.objects().contains_key(&Key::Current(name())) {
        let found = upkeep::verify(&*store, &name()).await.unwrap();
        assert_eq!(found.findings, [], "the store is not sound");
    }
}
