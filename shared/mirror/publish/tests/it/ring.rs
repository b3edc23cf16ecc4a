//! Rings: what a step writes, what collection keeps, and what lets a ring move.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::{Availability, Current, Key, ObjectKey, Outcome, Ring, Sha256, Status};
use publish::{
    Catalog, CatalogSource, Mirror, PollMetrics, PollOptions, Promotion, Report, RingRule,
    RingSource, SourceLimits, ValidationMode, remove,
};
use store::{Store, StoreExt};
use storekit::MemoryStore;
use tempfile::TempDir;
use upkeep::{GcOptions, Retention, RollbackOptions, gc};

use crate::site::{Site, images, mirror, package, settings, status};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// A catalog `c` of a folder, and the ring `prod`, seven days later. The clock of the store goes by
/// hand.
struct RingSite {
    source: Site<TempDir>,
    store: MemoryStore,
    mirror: Mirror,
    ring: Catalog,
    /// Seconds since the epoch.
    clock: Arc<AtomicU64>,
}

fn ring(after: Option<u64>, now: &[&str]) -> Catalog {
    let source = RingSource {
        of: "c".parse().unwrap(),
        rule: RingRule {
            after: after.map(Duration::from_secs),
            is_manual: after.is_none(),
        },
        now: now.iter().map(|name| (*name).to_owned()).collect(),
    };
    Catalog::new(
        "prod".parse().unwrap(),
        CatalogSource::Ring(Box::new(source)),
    )
}

impl RingSite {
    /// Returns a site on day 1000 that has published nothing.
    fn new(ring: Catalog) -> Self {
        let clock = Arc::new(AtomicU64::new(1000 * DAY));
        let now = clock.clone();
        let store = MemoryStore::with_clock(move || at(now.load(Ordering::SeqCst)));
        let mut source = Site::folder(ValidationMode::Warn);
        source.catalog.hold.rules = Some([].into());
        let limits = SourceLimits::default();
        let metrics = PollMetrics::default();
        Self {
            mirror: mirror(images(&limits), &store, settings(&limits), metrics),
            source,
            store,
            ring,
            clock,
        }
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    fn pass(&self, seconds: u64) {
        self.clock.fetch_add(seconds, Ordering::SeqCst);
    }

    /// Publishes package `a` with this version of its bundle, and polls the ring.
    async fn publish(&self, version: &str) -> Sha256 {
        self.source
            .write("a", &package("a").replace("a.v1", version));
        let report = self.poll(&self.source.catalog).await;
        assert_eq!(report.outcome, Outcome::Published, "{report:?}");
        self.step().await;
        report.content_hash.unwrap()
    }

    async fn poll(&self, catalog: &Catalog) -> Report {
        self.mirror.poll(catalog, PollOptions::default()).await
    }

    async fn step(&self) -> Report {
        self.poll(&self.ring).await
    }

    async fn promote(&self, promotion: Promotion) -> Report {
        let options = PollOptions {
            promotion: Some(promotion),
            ..PollOptions::default()
        };
        self.mirror.poll(&self.ring, options).await
    }

    async fn current(&self) -> Current {
        let key = Key::Current(self.ring.name.clone());
        let found = self.store.read_document::<Current>(&key).await;
        found.unwrap().unwrap().0
    }

    /// Returns the content that clients get.
    async fn served(&self) -> Option<Sha256> {
        let current = self.current().await;
        let is_served = current.availability.is_available();
        is_served.then_some(current.content_hash)
    }

    async fn place(&self) -> Ring {
        *self.current().await.source.ring.unwrap()
    }

    async fn waiting(&self) -> Vec<Sha256> {
        let waiting = self.place().await.waiting;
        waiting.iter().map(|state| state.content_hash).collect()
    }

    async fn status(&self) -> Status {
        status(&self.store, &self.ring).await.unwrap()
    }

    async fn collect(&self) {
        let options = GcOptions {
            retention: Retention {
                generations: 0,
                grace: Duration::ZERO,
                ..Retention::default()
            },
            offline: true,
            ..GcOptions::default()
        };
        gc(&self.store, &options).await.unwrap();
    }

    async fn is_sound(&self) {
        let found = upkeep::verify(&self.store, &self.ring.name).await.unwrap();
        assert_eq!(found.findings, []);
    }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[tokio::test(flavor = "multi_thread")]
async fn ring_serves_nothing_before_its_first_state_is_old_enough() {
    let site = RingSite::new(ring(Some(7 * DAY), &[]));
    let report = site.step().await;
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error_text().unwrap();
    assert!(
        error.starts_with("waiting for c: it was never published")
            || error.starts_with("waiting for c: the store has no such catalog"),
        "{error}"
    );
    let first = site.publish("a.v1").await;
    assert_eq!(
        (site.served().await, site.waiting().await),
        (None, vec![first])
    );
    let status = site.status().await;
    let ripe = site.now() + 7 * DAY;
    assert_eq!(
        (status.outcome, status.next_at),
        (Outcome::Published, Some(at(ripe)))
    );
    let notice = "it serves nothing before 1972-10-04T00:00:00Z, when a state of c is old enough; \
                  `catalog-mirror promote` takes the newest state of c now";
    assert_eq!(status.notices, Some(vec![notice.to_owned()]));
    site.pass(7 * DAY - 1);
    assert_eq!(site.step().await.outcome, Outcome::Unchanged);
    assert_eq!(site.served().await, None);
    site.pass(1);
    let report = site.step().await;
    assert_eq!(
        (report.outcome, report.next_at()),
        (Outcome::Published, None)
    );
    assert_eq!(site.served().await, Some(first));
    assert_eq!(site.current().await.serial, 2);
    let status = site.status().await;
    assert_eq!((status.notices, status.next_at), (Some(Vec::new()), None));
    assert_eq!(site.step().await.outcome, Outcome::Unchanged);
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn step_writes_documents_only_and_the_objects_survive_the_history_of_the_source() {
    let site = RingSite::new(ring(Some(7 * DAY), &[]));
    let mut contents = Vec::new();
    for day in 0..20 {
        contents.push(site.publish(&format!("a.v{day}")).await);
        site.collect().await;
        site.pass(DAY);
    }
    // On day 20 the ring is at the state of day 13, which the source has forgotten.
    site.store.take_log();
    let report = site.step().await;
    assert_eq!(report.outcome, Outcome::Published, "{report:?}");
    assert_eq!(site.served().await, Some(contents[13]));
    assert_eq!((report.objects_published, report.bytes_published), (0, 0));
    assert_eq!(report.changes.changed, ["a"]);
    let written = site.store.written();
    assert!(
        written.iter().all(|key| ObjectKey::of(key).is_none()),
        "{written:?}"
    );
    site.collect().await;
    site.is_sound().await;
    assert_eq!(site.waiting().await, contents[14..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn state_that_was_rolled_back_within_the_delay_is_never_served() {
    let site = RingSite::new(ring(Some(7 * DAY), &[]));
    let good = site.publish("a.v1").await;
    site.pass(8 * DAY);
    site.step().await;
    let bad = site.publish("a.v2").await;
    assert_eq!(site.waiting().await, [bad]);
    site.pass(6 * DAY);
    let store: Arc<dyn Store> = Arc::new(site.store.clone());
    let options = RollbackOptions::default();
    let report = upkeep::rollback(&store, &site.source.catalog.name, &options).await;
    assert_eq!(report.outcome, Outcome::Published);
    site.pass(DAY);
    assert!(site.step().await.outcome.is_success());
    assert_eq!(site.served().await, Some(good));
    assert_eq!(site.waiting().await, []);
    // A rollback of the ring itself stays until its next state is old enough.
    let next = site.publish("a.v3").await;
    site.pass(7 * DAY);
    site.step().await;
    assert_eq!(site.served().await, Some(next));
    let report = upkeep::rollback(&store, &site.ring.name, &options).await;
    assert_eq!(report.outcome, Outcome::Published);
    assert_eq!(site.step().await.outcome, Outcome::Unchanged);
    assert_eq!(site.served().await, Some(good));
    let last = site.publish("a.v4").await;
    site.pass(7 * DAY);
    site.step().await;
    assert_eq!(site.served().await, Some(last));
}

#[tokio::test(flavor = "multi_thread")]
async fn ring_stays_served_while_its_source_cannot_be_used() {
    let site = RingSite::new(ring(Some(7 * DAY), &[]));
    let first = site.publish("a.v1").await;
    site.pass(7 * DAY);
    site.step().await;
    site.publish("a.v2").await;
    let mut hidden = site.source.catalog.clone();
    hidden.availability = Availability::Unavailable;
    site.poll(&hidden).await;
    site.pass(7 * DAY);
    let error = site.step().await.error_text().unwrap();
    assert_eq!(error, "waiting for c: it is Unavailable");
    assert_eq!(site.served().await, Some(first));
    remove(&site.store, &hidden.name).await.unwrap();
    let error = site.step().await.error_text().unwrap();
    assert!(error.starts_with("waiting for c: "), "{error}");
    site.collect().await;
    assert_eq!(site.served().await, Some(first));
    site.is_sound().await;
    // It comes back with another history.
    let again = site.publish("a.v3").await;
    assert_eq!(site.waiting().await, [again]);
    site.pass(7 * DAY);
    site.step().await;
    assert_eq!(site.served().await, Some(again));
}

#[tokio::test(flavor = "multi_thread")]
async fn person_moves_a_ring_and_what_is_gone_is_refused() {
    let site = RingSite::new(ring(None, &[]));
    let first = site.publish("a.v1").await;
    let second = site.publish("a.v2").await;
    let third = site.publish("a.v3").await;
    site.pass(400 * DAY);
    site.step().await;
    assert_eq!(
        (site.served().await, site.waiting().await),
        (None, vec![first, second, third])
    );
    let digits = second.to_string()[..10].to_owned();
    let report = site.promote(Promotion::State(digits)).await;
    assert_eq!(report.outcome, Outcome::Published, "{report:?}");
    assert_eq!(
        (site.served().await, site.waiting().await),
        (Some(second), vec![third])
    );
    let before = site.status().await;
    for gone in [first.to_string(), "0123456789".to_owned()] {
        let report = site.promote(Promotion::State(gone)).await;
        let error = report.error_text().unwrap();
        let expected = format!("there are {third}");
        assert!(
            error.starts_with("cannot promote: ") && error.ends_with(&expected),
            "{error}"
        );
    }
    assert_eq!(site.status().await, before);
    let report = site.promote(Promotion::Newest).await;
    assert_eq!(
        (report.outcome, report.objects_published),
        (Outcome::Published, 0)
    );
    assert_eq!(site.served().await, Some(third));
    assert_eq!(
        site.promote(Promotion::Newest).await.outcome,
        Outcome::Unchanged
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn candidate_whose_objects_are_lost_is_passed_over() {
    let site = RingSite::new(ring(Some(7 * DAY), &[]));
    let first = site.publish("a.v1").await;
    site.pass(7 * DAY);
    site.step().await;
    site.source
        .write("a", &package("a").replace("a.v1", "a.v2"));
    site.poll(&site.source.catalog).await;
    let key = Key::Current(site.source.catalog.name.clone());
    let source: Current = site.store.read_document(&key).await.unwrap().unwrap().0;
    site.store.lose(&source.snapshot.key());
    site.step().await;
    assert_eq!(
        (site.served().await, site.waiting().await),
        (Some(first), Vec::new())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_of_now_are_taken_at_once_and_the_others_wait() {
    let site = RingSite::new(ring(Some(7 * DAY), &["b", "gone"]));
    let first = site.publish("a.v1").await;
    site.pass(7 * DAY);
    let report = site.step().await;
    assert_eq!(
        (report.outcome, report.objects_published),
        (Outcome::Published, 0)
    );
    assert_eq!(site.served().await, Some(first));
    let notice = "ring.now names gone, which c does not have";
    assert_eq!(site.status().await.notices, Some(vec![notice.to_owned()]));
    let shards = async || {
        let current = site.current().await;
        let read = store::read_stored::<model::Snapshot>(&site.store, &current.snapshot.digest);
        let snapshot = read.await.unwrap();
        ["a", "b", "c"].map(|name| snapshot.package(name).unwrap().lines)
    };
    let before = shards().await;
    // The package that waits changes alone: nothing is composed.
    site.publish("a.v2").await;
    assert_eq!((site.served().await, shards().await), (Some(first), before));
    site.source
        .write("b", &package("b").replace("b.v1", "b.v2"));
    let newest = site.poll(&site.source.catalog).await.content_hash;
    let report = site.step().await;
    assert_eq!(report.outcome, Outcome::Published, "{report:?}");
    assert_eq!(report.changes.changed, ["b"]);
    let mixed = shards().await;
    assert!(mixed[0] == before[0] && mixed[1] != before[1] && mixed[2] == before[2]);
    site.is_sound().await;
    site.collect().await;
    assert_eq!(site.step().await.outcome, Outcome::Unchanged);
    // The two states that wait were published in two seconds, and the second one replaced the first.
    site.pass(7 * DAY + 1);
    let report = site.step().await;
    assert_eq!(report.changes.changed, ["a"], "{report:?}");
    // The newest state as it is.
    assert_eq!(site.served().await, newest);
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_pollers_of_one_ring_move_it_once() {
    let site = RingSite::new(ring(Some(7 * DAY), &[]));
    site.publish("a.v1").await;
    site.pass(7 * DAY);
    site.step().await;
    site.publish("a.v2").await;
    site.pass(7 * DAY);
    let other = mirror(
        images(&SourceLimits::default()),
        &site.store,
        settings(&SourceLimits::default()),
        PollMetrics::default(),
    );
    let polls = [
        site.mirror.poll(&site.ring, PollOptions::default()),
        other.poll(&site.ring, PollOptions::default()),
    ];
    let reports = futures_util::future::join_all(polls).await;
    assert!(
        reports.iter().all(|report| report.outcome.is_success()),
        "{reports:?}"
    );
    assert_eq!(site.current().await.serial, 3);
}

/// A catalog that was pulled, and is a ring from now on, is served as it was until the first state
/// is old enough.
#[tokio::test(flavor = "multi_thread")]
async fn catalog_that_becomes_a_ring_stays_served() {
    let site = RingSite::new(ring(Some(7 * DAY), &[]));
    let mut pulled = site.source.catalog.clone();
    pulled.name = site.ring.name.clone();
    let before = site.poll(&pulled).await.content_hash;
    let next = site.publish("a.v2").await;
    assert_eq!(
        (site.served().await, site.waiting().await),
        (before, vec![next])
    );
    assert_eq!(site.current().await.serial, 1);
    site.pass(7 * DAY);
    site.step().await;
    assert_eq!(site.served().await, Some(next));
}
