//! A store with a clock that tests move, and publications through the real transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use model::{CatalogName, Current, GcState, Key, Kind, ObjectDigest, ObjectRef, Snapshot};
use publish::{Env, PublishError, Transaction, TransactionOptions, remove};
use store::{Condition, Store, StoreExt};
use storekit::{Action, Answer, MemoryStore, Moment};
use testkit::{BuiltSnapshot, CurrentBuilder, SnapshotBuilder};
use upkeep::{GcError, GcOptions, GcReport, Retention, gc, verify};

pub(crate) const HOUR: u64 = 3600;
pub(crate) const DAY: u64 = 24 * HOUR;

/// Start of the store's clock: 2026-01-01.
const START: u64 = 1_767_225_600;

pub(crate) struct World {
    pub(crate) store: MemoryStore,
    /// Seconds by which tests have advanced all clocks.
    passed: Arc<AtomicU64>,
    /// Seconds by which tests have advanced the publisher's own clock alone.
    own: Arc<AtomicU64>,
    pub(crate) env: Env,
}

impl World {
    pub(crate) fn new() -> Self {
        let (passed, own) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let clock = passed.clone();
        let time = move || UNIX_EPOCH + Duration::from_secs(START + clock.load(Ordering::Relaxed));
        let store = MemoryStore::with_clock(time.clone());
        let boot = [passed.clone(), own.clone()];
        let since_boot = move || {
            let seconds = boot.iter().map(|seconds| seconds.load(Ordering::Relaxed));
            Duration::from_secs(1000 + seconds.sum::<u64>())
        };
        let env = Env {
            clock: Arc::new(time),
            since_boot: Arc::new(since_boot),
            rng: Arc::new(|| 0.5),
        };
        Self {
            store,
            passed,
            own,
            env,
        }
    }

    /// Advances all clocks by this number of seconds.
    pub(crate) fn pass(&self, seconds: u64) {
        self.passed.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Advances only the publisher's own clock by this number of seconds.
    pub(crate) fn pass_own(&self, seconds: u64) {
        self.own.fetch_add(seconds, Ordering::Relaxed);
    }

    pub(crate) async fn begin(&self, catalog: &str) -> Transaction {
        self.begin_with(catalog, false).await
    }

    pub(crate) async fn begin_with(&self, catalog: &str, recheck_existing: bool) -> Transaction {
        let options = TransactionOptions {
            recheck_existing,
            env: self.env.clone(),
            ..TransactionOptions::default()
        };
        let store = Arc::new(self.store.clone());
        Transaction::begin(store, &name(catalog), options)
            .await
            .unwrap()
    }

    /// Publishes these packages, each with the same content whenever it is published.
    pub(crate) async fn publish(&self, catalog: &str, packages: &[&str]) -> Snapshot {
        self.try_publish(catalog, packages).await.unwrap();
        built(packages).snapshot
    }

    pub(crate) async fn try_publish(
        &self,
        catalog: &str,
        packages: &[&str],
    ) -> Result<Current, PublishError> {
        self.publish_built(catalog, &built(packages)).await
    }

    pub(crate) async fn publish_built(
        &self,
        catalog: &str,
        built: &BuiltSnapshot,
    ) -> Result<Current, PublishError> {
        let transaction = self.begin(catalog).await;
        put_all(&transaction, built).await?;
        commit(&transaction, built).await
    }

    pub(crate) async fn remove(&self, catalog: &str) {
        remove(&self.store, &name(catalog)).await.unwrap();
    }

    /// Takes the step of garbage collection that is due, with the defaults but for `change`.
    pub(crate) async fn try_gc(
        &self,
        change: impl FnOnce(&mut GcOptions),
    ) -> Result<GcReport, GcError> {
        let mut options = GcOptions {
            env: self.env.clone(),
            ..GcOptions::default()
        };
        change(&mut options);
        gc(&self.store, &options).await
    }

    pub(crate) async fn gc(&self) -> GcReport {
        self.try_gc(|_| {}).await.unwrap()
    }

    /// Takes all steps of a round, with the waits between them.
    pub(crate) async fn gc_round(&self) {
        self.gc_round_with(&Retention::default()).await;
    }

    pub(crate) async fn gc_round_with(&self, retention: &Retention) {
        self.pass(2 * HOUR);
        for _ in 0..3 {
            let report = self
                .try_gc(|options| options.retention = retention.clone())
                .await;
            report.unwrap();
            self.pass(2 * HOUR);
        }
    }

    /// Writes an object or a document as another program does.
    pub(crate) async fn put(&self, key: &Key, bytes: impl Into<Vec<u8>>) {
        let bytes: Vec<u8> = bytes.into();
        self.store
            .put(key, bytes.into(), Condition::Always)
            .await
            .unwrap();
    }

    /// Answers in place of the store at this moment of each write of a key.
    pub(crate) fn at_put(
        &self,
        key: Key,
        at: Moment,
        answer: impl Fn() -> Answer + Send + Sync + 'static,
    ) {
        self.store.set_hook(move |call, moment| {
            let is_put = matches!(call.action, Action::Put(_)) && call.key.as_ref() == Some(&key);
            let is_now = is_put && moment == at;
            if is_now { answer() } else { Answer::GoOn }
        });
    }

    pub(crate) async fn state(&self) -> GcState {
        let found = self.store.read_document(&Key::Gc).await.unwrap();
        found.map(|(state, _)| state).unwrap_or_default()
    }

    pub(crate) async fn current(&self, catalog: &str) -> Option<Current> {
        let key = Key::Current(name(catalog));
        let found = self.store.read_document(&key).await.unwrap();
        found.map(|(current, _)| current)
    }

    pub(crate) fn has(&self, object: &ObjectRef) -> bool {
        self.store.objects().contains_key(&object.key())
    }

    /// Checks that every published Snapshot and all that it names is there.
    pub(crate) async fn is_sound(&self) {
        for key in self.store.objects().into_keys() {
            if let Key::Current(catalog) = key {
                let found = verify(&self.store, &catalog).await.unwrap();
                assert_eq!(found.findings, [], "{catalog}");
            }
        }
    }
}

pub(crate) fn name(text: &str) -> CatalogName {
    text.parse().unwrap()
}

pub(crate) fn built(packages: &[&str]) -> BuiltSnapshot {
    let line = |package: &str| format!("{{\"name\":\"{package}\",\"schema\":\"olm.package\"}}\n");
    let builder = SnapshotBuilder::new();
    let packages = packages.iter();
    packages
        .fold(builder, |builder, package| {
            builder.package(package, line(package))
        })
        .build()
}

pub(crate) fn shard(package: &str) -> ObjectRef {
    built(&[package]).snapshot.packages[0]
        .stored
        .with_kind(Kind::Package)
}

pub(crate) async fn put_all(
    transaction: &Transaction,
    built: &BuiltSnapshot,
) -> Result<(), PublishError> {
    for (key, bytes) in &built.objects {
        let Key::Object(kind, _) = key else {
            panic!("{key} is immutable")
        };
        let object = ObjectDigest::of(bytes).with_kind(*kind);
        if !transaction.find(&object).await? {
            transaction.put_verified(object, bytes.clone()).await?;
        }
    }
    Ok(())
}

pub(crate) async fn commit(
    transaction: &Transaction,
    built: &BuiltSnapshot,
) -> Result<Current, PublishError> {
    let next = CurrentBuilder::new(&built.snapshot)
        .after(transaction.base())
        .build();
    Ok(transaction.commit(next).await?.0)
}
