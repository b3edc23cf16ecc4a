//! A mirror in memory, published as a poll does.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};

use keep::add_name;
use layout::{
    Availability, CatalogName, Current, Document, Form, Image, Key, Sha256, Snapshot, SnapshotRef, SourceRef, Stored,
    Whole,
};
use oci::Documents;
use render::{Nothing, Renderer, Rendering, Settings, Sinks};
use store::{Condition, MemoryStore, Store, StoreExt};
use sync::{Copier, StoreOrigin};

pub(crate) fn name() -> CatalogName {
    "demo".parse().unwrap()
}

/// Packages and how many bundles each has.
pub(crate) type Packages<'a> = &'a [(&'a str, usize)];

/// What is made of the Shards: three forms of `all.json`, the index, and the image with its layer, four manifests, their
/// configurations and the index over them.
pub(crate) const DERIVED: u64 = 3 + 1 + 10;

pub(crate) const V1: Packages<'_> = &[("cache", 3), ("database", 40), ("queue", 5), ("search", 2)];
pub(crate) const V2: Packages<'_> = &[("cache", 3), ("database", 41), ("queue", 5), ("vault", 2)];

/// Publishes the packages under the next serial.
pub(crate) async fn publish(store: &Arc<dyn Store>, name: &CatalogName, packages: Packages<'_>) -> Current {
    let rendering = render(packages);
    let (mut stored, mut whole) = (BTreeMap::new(), Vec::new());
    for shard in rendering.shards() {
        let bytes = rendering.compressed(shard).unwrap().into_owned();
        stored.insert(shard.sha256, put(store, &Key::Shard(shard.sha256), bytes).await);
    }
    let forms = Form::ALL.map(|_| Buffer::default());
    let layer = Buffer::default();
    let sink = |buffer: &Buffer| Some(Box::new(buffer.clone()) as Box<dyn io::Write + Send>);
    let [zstd, gzip, identity] = forms.each_ref().map(sink);
    let facts = rendering
        .write_all(Sinks {
            zstd,
            gzip,
            identity,
            layer: sink(&layer),
        })
        .unwrap();
    let hash = facts.content_hash;
    for (form, buffer) in Form::ALL.into_iter().zip(forms) {
        whole.push(put(store, &Key::All(name.clone(), hash, form), buffer.bytes()).await);
    }
    let image = put_image(store, layer.bytes(), facts.layer.unwrap().diff_id).await;
    let mut rendering = rendering;
    let index = rendering.take_index().unwrap().bytes;
    let index = put(store, &Key::Index(name.clone(), hash), index).await;
    let whole = Whole {
        zstd: whole[0],
        gzip: whole[1],
        identity: Some(whole[2]),
    };
    let snapshot = Snapshot {
        image: Some(image),
        ..rendering.snapshot(&facts, whole, index, |sha256| stored[sha256])
    };
    let bytes = snapshot.to_bytes();
    put(store, &Key::Snapshot(name.clone(), hash), bytes.clone()).await;
    point(store, name, hash, &bytes).await
}

/// The image around a layer whose tar archive has the hash `diff_id`.
pub(crate) async fn put_image(store: &Arc<dyn Store>, layer: Vec<u8>, diff_id: Sha256) -> Image {
    let layer = put(store, &Key::Blob(Sha256::of(&layer)), layer).await;
    let documents = Documents::new(layer, diff_id);
    let image = documents.image(layer, diff_id);
    for bytes in documents.into_all() {
        put(store, &Key::Blob(Sha256::of(&bytes)), bytes).await;
    }
    image
}

/// Writes the pointer.
async fn point(store: &Arc<dyn Store>, name: &CatalogName, hash: Sha256, snapshot: &[u8]) -> Current {
    let key = Key::Current(name.clone());
    let before = store
        .read_document::<Current>(&key)
        .await
        .unwrap()
        .map(|(current, _)| current);
    let current = Current {
        serial: before.as_ref().map_or(1, |before| before.serial + 1),
        content_hash: hash,
        snapshot: SnapshotRef::new(name, hash, snapshot),
        source: SourceRef {
            reference: "quay.io/a/b:c".into(),
            digest: "sha256:00".into(),
            verified: None,
        },
        render_version: 1,
        published_at: UNIX_EPOCH + Duration::from_secs(1_790_000_000),
        brought_back: None,
        availability: Availability::Available,
        signatures: Vec::new(),
        previous: before.as_ref().map(Current::as_previous).unwrap_or_default(),
    };
    add_name(&**store, name).await.unwrap();
    store.write_document(&key, &current, Condition::Always).await.unwrap();
    current
}

pub(crate) async fn put(store: &Arc<dyn Store>, key: &Key, bytes: Vec<u8>) -> Stored {
    let stored = Stored {
        size: bytes.len() as u64,
        sha256: Sha256::of(&bytes),
    };
    store.put(key, bytes.into(), Condition::Always).await.unwrap();
    stored
}

fn render(packages: Packages<'_>) -> Rendering {
    let mut renderer = Renderer::start(Settings::default(), Arc::new(Nothing));
    for (package, bundles) in packages {
        let mut text = format!("schema: olm.package\nname: {package}\n");
        for bundle in 0..*bundles {
            text.push_str(&format!(
                "---\nschema: olm.bundle\nname: {package}.v{bundle}\npackage: {package}\n"
            ));
        }
        let path = format!("{package}/catalog.yaml");
        renderer.file(&path, &mut text.as_bytes()).unwrap();
    }
    renderer.finish().unwrap()
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A store with the versions published one after the other.
pub(crate) async fn mirror(versions: &[Packages<'_>]) -> (MemoryStore, Arc<dyn Store>) {
    let memory = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(memory.clone());
    for packages in versions {
        publish(&store, &name(), packages).await;
    }
    (memory, store)
}

pub(crate) fn copier(from: &Arc<dyn Store>, to: &Arc<dyn Store>, settings: sync::Settings) -> Copier {
    Copier::new(Arc::new(StoreOrigin(from.clone())), to.clone(), settings)
}

pub(crate) async fn snapshot(store: &Arc<dyn Store>) -> Snapshot {
    let key = Key::Current(name());
    let (current, _) = store.read_document::<Current>(&key).await.unwrap().unwrap();
    let key = Key::Snapshot(name(), current.content_hash);
    store.read_document(&key).await.unwrap().unwrap().0
}

/// Puts another snapshot of the same content in the place of the published one.
pub(crate) async fn republish(store: &Arc<dyn Store>, changed: &Snapshot) {
    let key = Key::Snapshot(name(), changed.content_hash);
    put(store, &key, changed.to_bytes()).await;
    let key = Key::Current(name());
    let (mut current, _) = store.read_document::<Current>(&key).await.unwrap().unwrap();
    current.snapshot = SnapshotRef::new(&name(), changed.content_hash, &changed.to_bytes());
    store.write_document(&key, &current, Condition::Always).await.unwrap();
}

/// Writes the index of the published image as another version of this program might, and returns its key.
pub(crate) async fn remake_image_index(store: &Arc<dyn Store>) -> Key {
    let mut changed = snapshot(store).await;
    let image = changed.image.as_mut().unwrap();
    let mut bytes = Documents::new(image.layer, image.diff_id).index;
    bytes.push(b'\n');
    let key = Key::Blob(Sha256::of(&bytes));
    image.index = put(store, &key, bytes).await;
    republish(store, &changed).await;
    key
}

/// What readers depend on: all objects but `status.json`, and of them those that the published state names.
pub(crate) async fn published(memory: &MemoryStore) -> BTreeMap<Key, bytes::Bytes> {
    let store: Arc<dyn Store> = Arc::new(memory.clone());
    let objects = memory.objects();
    let Some(current) = objects.get(&Key::Current(name())) else {
        return BTreeMap::new();
    };
    let current = Current::from_bytes(current).unwrap();
    let mut keys = vec![
        Key::Catalogs,
        Key::Current(name()),
        Key::Snapshot(name(), current.content_hash),
    ];
    keys.extend(
        snapshot(&store)
            .await
            .objects(&name())
            .into_iter()
            .map(|named| named.key),
    );
    keys.into_iter()
        .map(|key| (key.clone(), objects[&key].clone()))
        .collect()
}

/// That the store is whole, and how it stands.
pub(crate) async fn assert_sound(memory: &MemoryStore) {
    let store: Arc<dyn Store> = Arc::new(memory.clone());
    if memory.objects().contains_key(&Key::Current(name())) {
        let found = keep::verify(&*store, &name()).await.unwrap();
        assert_eq!(found.findings, [], "the store is not sound");
    }
}
