//! A store with a clock of its own, and publications as pollers make them.

use std::{
    collections::BTreeSet,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use keep::{GcError, GcReport, GcSettings, SettleError, Watch, add_name, gc};
use layout::{
    Availability, CatalogName, Current, Document, Form, Index, Key, RENDER_VERSION, Sha256, ShardRef, Snapshot,
    SnapshotRef, SourceRef, Stored, Whole,
};
use store::{Condition, MemoryStore, StoreError, StoreExt, Version};

pub(crate) const HOUR: u64 = 3600;
pub(crate) const DAY: u64 = 24 * HOUR;

/// What the tests publish: the names of packages, each with one line.
pub(crate) type Packages<'a> = &'a [&'a str];

pub(crate) struct World {
    pub(crate) store: MemoryStore,
    seconds: Arc<AtomicU64>,
}

impl World {
    pub(crate) fn new() -> Self {
        let seconds = Arc::new(AtomicU64::new(1_790_000_000));
        let clock = seconds.clone();
        let store = MemoryStore::with_clock(move || UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::Relaxed)));
        Self { store, seconds }
    }

    pub(crate) fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.seconds.load(Ordering::Relaxed))
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// One that must succeed.
    pub(crate) async fn gc(&self, settings: &GcSettings) -> GcReport {
        self.try_gc(settings).await.unwrap()
    }

    pub(crate) async fn try_gc(&self, settings: &GcSettings) -> Result<GcReport, GcError> {
        gc(&self.store, settings).await
    }

    /// Publishes until nobody interferes.
    pub(crate) async fn publish(&self, name: &str, packages: Packages<'_>) -> Sha256 {
        publish(&self.store, &catalog(name), packages, self.now()).await
    }

    /// Publishes what lies there already.
    pub(crate) async fn rollback(&self, name: &str, hash: Sha256) -> Result<(), Failed> {
        let (store, name) = (&self.store, catalog(name));
        let watch = Watch::start(store).await?;
        let (current, version) = current(&self.store, &name).await.ok_or(Failed::Gone)?;
        let key = Key::Snapshot(name.clone(), hash);
        let (snapshot, _) = store.read_document::<Snapshot>(&key).await?.ok_or(Failed::Gone)?;
        if !keep::missing(store, &name, &snapshot).await?.is_empty() {
            return Err(Failed::Gone);
        }
        let next = next(&name, &snapshot, Some(&current), self.now());
        commit(store, watch, &name, &snapshot, (next, Some(version))).await
    }

    pub(crate) async fn remove(&self, name: &str) {
        keep::remove(&self.store, &catalog(name)).await.unwrap();
    }

    /// A document that is there.
    pub(crate) async fn read<T: Document>(&self, key: &Key) -> T {
        self.store.read_document::<T>(key).await.unwrap().unwrap().0
    }

    pub(crate) fn keys(&self) -> BTreeSet<Key> {
        self.store.objects().into_keys().collect()
    }

    pub(crate) async fn is_sound(&self) {
        is_served(&self.store);
        let names = self.keys().into_iter().filter_map(|key| match key {
            Key::Current(name) => Some(name),
            _ => None,
        });
        for name in names {
            let found = keep::verify(&self.store, &name).await.unwrap();
            assert_eq!(found.findings, [], "{name}");
        }
    }
}

/// Why a rollback was not done.
#[derive(Debug)]
pub(crate) enum Failed {
    Gone,
    Store,
    Settle(SettleError),
}

impl From<SettleError> for Failed {
    fn from(error: SettleError) -> Self {
        Self::Settle(error)
    }
}

impl From<StoreError> for Failed {
    fn from(_: StoreError) -> Self {
        Self::Store
    }
}

impl From<store::ReadError> for Failed {
    fn from(_: store::ReadError) -> Self {
        Self::Store
    }
}

pub(crate) fn catalog(name: &str) -> CatalogName {
    name.parse().unwrap()
}

pub(crate) fn shard(package: &str) -> Key {
    Key::Shard(Sha256::of(&line(package)))
}

/// What is published leads to nothing that is not there.
pub(crate) fn is_served(store: &MemoryStore) {
    let objects = store.objects();
    for (key, bytes) in &objects {
        let Key::Current(name) = key else { continue };
        let current = Current::from_bytes(bytes).unwrap();
        let key = Key::Snapshot(name.clone(), current.content_hash);
        let snapshot = objects
            .get(&key)
            .unwrap_or_else(|| panic!("{key} is published and gone"));
        for named in Snapshot::from_bytes(snapshot).unwrap().objects(name) {
            assert!(objects.contains_key(&named.key), "{} is published and gone", named.key);
        }
    }
}

/// As a poller does: what lies there is relied on, the pointer comes last, and a publication that was interfered with
/// starts again.
pub(crate) async fn publish(
    store: &MemoryStore,
    name: &CatalogName,
    packages: Packages<'_>,
    now: SystemTime,
) -> Sha256 {
    for _ in 0..5 {
        match try_publish(store, name, packages, now).await {
            Ok(hash) => return hash,
            Err(Failed::Settle(SettleError::Swept(_))) => {}
            Err(failed) => panic!("{failed:?}"),
        }
    }
    panic!("it is interfered with for ever");
}

async fn try_publish(
    store: &MemoryStore,
    name: &CatalogName,
    packages: Packages<'_>,
    now: SystemTime,
) -> Result<Sha256, Failed> {
    let mut watch = Watch::start(store).await?;
    let before = current(store, name).await;
    let snapshot = write(store, name, packages).await;
    let current = before.as_ref().map(|(current, _)| current);
    let next = next(name, &snapshot, current, now);
    if let Some(current) = current {
        watch.spare_forgotten(current, (next.content_hash, &next.previous), now);
    }
    add_name(store, name).await?;
    let version = before.map(|(_, version)| version);
    commit(store, watch, name, &snapshot, (next, version)).await?;
    Ok(snapshot.content_hash)
}

async fn commit(
    store: &MemoryStore,
    watch: Watch,
    name: &CatalogName,
    snapshot: &Snapshot,
    (next, version): (Current, Option<Version>),
) -> Result<(), Failed> {
    let announced = watch.settle(store, name, snapshot).await?;
    let condition = version.map_or(Condition::CreateOnly, Condition::Replace);
    store
        .write_document(&Key::Current(name.clone()), &next, condition)
        .await?;
    announced.withdraw(store).await;
    Ok(())
}

pub(crate) async fn current(store: &MemoryStore, name: &CatalogName) -> Option<(Current, Version)> {
    store.read_document(&Key::Current(name.clone())).await.unwrap()
}

fn next(name: &CatalogName, snapshot: &Snapshot, before: Option<&Current>, now: SystemTime) -> Current {
    Current {
        serial: before.map_or(1, |before| before.serial + 1),
        content_hash: snapshot.content_hash,
        snapshot: SnapshotRef::new(name, snapshot.content_hash, &snapshot.to_bytes()),
        source: SourceRef {
            reference: "quay.io/a/b:c".into(),
            digest: "sha256:00".into(),
            verified: None,
        },
        render_version: RENDER_VERSION,
        published_at: now,
        brought_back: None,
        availability: Availability::Available,
        signatures: Vec::new(),
        previous: before.map(Current::as_previous).unwrap_or_default(),
    }
}

fn line(package: &str) -> Vec<u8> {
    format!("{{\"name\":\"{package}\",\"schema\":\"olm.package\"}}\n").into_bytes()
}

/// Everything but the pointer.
async fn write(store: &MemoryStore, name: &CatalogName, packages: Packages<'_>) -> Snapshot {
    let mut shards = Vec::new();
    for package in packages {
        let line = line(package);
        let key = Key::Shard(Sha256::of(&line));
        shards.push(ShardRef {
            name: (*package).to_owned(),
            sha256: Sha256::of(&line),
            size: line.len() as u64,
            metas: 1,
            stored: put(store, &key, zstd(&line)).await,
        });
    }
    let all: Vec<u8> = packages.iter().flat_map(|package| line(package)).collect();
    let hash = Sha256::of(&all);
    let form = |form| Key::All(name.clone(), hash, form);
    let snapshot = Snapshot {
        render_version: RENDER_VERSION,
        content_hash: hash,
        size: all.len() as u64,
        metas: packages.len() as u64,
        all: Whole {
            zstd: put(store, &form(Form::Zstd), zstd(&all)).await,
            gzip: put(store, &form(Form::Gzip), gzip(&all)).await,
            identity: None,
        },
        index: put(
            store,
            &Key::Index(name.clone(), hash),
            zstd(&Index::default().to_bytes()),
        )
        .await,
        global: None,
        packages: shards,
        image: None,
    };
    put(store, &Key::Snapshot(name.clone(), hash), snapshot.to_bytes()).await;
    snapshot
}

/// What is there is kept.
async fn put(store: &MemoryStore, key: &Key, bytes: Vec<u8>) -> Stored {
    use store::Store as _;
    let stored = Stored {
        size: bytes.len() as u64,
        sha256: Sha256::of(&bytes),
    };
    match store.put(key, bytes.into(), Condition::CreateOnly).await {
        Err(error) if !error.is_conflict() => panic!("{error}"),
        _ => stored,
    }
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
