//! Registries that are too slow to wait for.

use std::{sync::Arc, time::Duration};

use catalog_mirror_publish::{
    Catalog, Mirror, MirrorSettings, PollError, PollMetrics, PollOptions, Report, SourceLimits,
};
use model::Outcome;
use prometheus_client::registry::Registry as Metrics;
use source::Source;
use storekit::MemoryStore;
use testkit::{Kind, Registry, until};
use tokio::time::timeout;

use crate::site::{self, image, layer, page, status};

const PATIENCE: Duration = Duration::from_secs(60);

/// Time that a pull waits for its registry.
const WAIT: Duration = Duration::from_millis(100);

/// Never within the time of a test.
const NEVER: Duration = Duration::from_secs(3600);

/// Two pulls at a time, each of which may wait a tenth of a second for its registry.
fn mirror(store: &MemoryStore) -> Arc<Mirror> {
    let limits = SourceLimits::default();
    let settings = MirrorSettings {
        side_by_side: 2,
        registry_wait: Some(WAIT),
        ..site::settings(&limits)
    };
    let metrics = PollMetrics::default();
    Arc::new(site::mirror(site::images(&limits), store, settings, metrics))
}

async fn registry(names: &[&str]) -> (Registry, Vec<Catalog>) {
    let registry = Registry::start().await;
    let catalogs = names.iter().map(|name| {
        registry.push(name, "v1", &image([layer("configs/a.yaml", name)]));
        let source = registry.reference(name, "v1").parse::<Source>().unwrap();
        Catalog::new(name.parse().unwrap(), source)
    });
    let catalogs = catalogs.collect();
    (registry, catalogs)
}

async fn poll(mirror: &Mirror, catalog: &Catalog) -> Report {
    let polled = timeout(PATIENCE, mirror.poll(catalog, PollOptions::default())).await;
    polled.unwrap_or_else(|_| panic!("{} is not polled", catalog.name))
}

/// Catalogs of a registry that answers no HEAD of a tag, or no blob, hold back no other catalog of the round.
#[tokio::test(flavor = "multi_thread")]
async fn round_goes_on_beside_a_registry_that_hangs() {
    for kind in [Kind::Head, Kind::Blob] {
        let store = MemoryStore::new();
        let mirror = mirror(&store);
        let (hung_registry, mut catalogs) = registry(&["hung-a", "hung-b", "hung-c", "hung-d", "hung-e"]).await;
        // More than are resolved at a time.
        let names: Vec<String> = (0..40).map(|at| format!("quick-{at}")).collect();
        let (_quick_registry, quick) = registry(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        hung_registry.delay(kind, NEVER);
        let hung = catalogs.len();
        catalogs.extend(quick.clone());
        let round = tokio::spawn(async move { mirror.poll_all(&catalogs, false).await });
        for catalog in &quick {
            let is_published = async || {
                let status = status(&store, catalog).await;
                status.is_some_and(|status| status.outcome == Outcome::Published)
            };
            until("all quick catalogs are published", is_published).await;
        }
        until("each hung catalog gets a turn", async || {
            hung_registry.count(kind) >= hung
        })
        .await;
        assert!(!round.is_finished());
        round.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_catalog_is_published_from_its_copy() {
    let store = MemoryStore::new();
    let mirror = mirror(&store);
    let (registry, catalogs) = registry(&["slow"]).await;
    registry.delay(Kind::Blob, Duration::from_millis(300));
    let report = poll(&mirror, &catalogs[0]).await;
    assert_eq!(report.outcome, Outcome::Published, "{:?}", report.error_text());
    assert!(report.bytes_pulled > 0);
    // The config that was given up, then the copy: the config and the layer.
    assert_eq!(registry.count(Kind::Blob), 3);
    let status = status(&store, &catalogs[0]).await.unwrap();
    assert_eq!((status.outcome, status.open_pulls), (Outcome::Published, None));
    let again = poll(&mirror, &catalogs[0]).await;
    assert_eq!(again.outcome, Outcome::Unchanged);
}

/// A process that dies while it copies an image has not read the image, so its death does not count against it.
#[tokio::test(flavor = "multi_thread")]
async fn copying_is_not_recorded_as_open_pull() {
    let store = MemoryStore::new();
    let mirror = mirror(&store);
    let (registry, catalogs) = registry(&["slow"]).await;
    registry.delay(Kind::Blob, NEVER);
    let task = {
        let (mirror, catalog) = (mirror.clone(), catalogs[0].clone());
        tokio::spawn(async move { mirror.poll(&catalog, PollOptions::default()).await })
    };
    until("the image is copied", async || registry.count(Kind::Blob) >= 2).await;
    let status = status(&store, &catalogs[0]).await.unwrap();
    assert_eq!(status.open_pulls, None);
    task.abort();
}

/// A catalog whose pull does not end, for whatever reason, gives its place back and names the limit. Its own limit wins.
#[tokio::test(flavor = "multi_thread")]
async fn pull_that_takes_too_long_names_its_limit_and_is_counted() {
    let store = MemoryStore::new();
    let limits = SourceLimits::default();
    let settings = MirrorSettings {
        side_by_side: 1,
        registry_wait: None,
        ..site::settings(&limits)
    };
    let mut metrics = Metrics::default();
    let metrics_of_polls = PollMetrics::register(&mut metrics);
    let mirror = site::mirror(site::images(&limits), &store, settings, metrics_of_polls.clone());
    let (registry, mut catalogs) = registry(&["slow", "quick"]).await;
    catalogs[0].limits = Some(SourceLimits {
        pull_time: Duration::from_millis(200),
        ..limits
    });
    registry.delay(Kind::Blob, NEVER);
    let report = poll(&mirror, &catalogs[0]).await;
    assert!(
        matches!(report.error, Some(PollError::PullTime(_))),
        "{:?}",
        report.error
    );
    assert!(report.error_text().unwrap().contains("pullSeconds"));
    registry.delay(Kind::Blob, Duration::ZERO);
    assert_eq!(poll(&mirror, &catalogs[1]).await.outcome, Outcome::Published);
    metrics_of_polls.refresh([]);
    let text = page(&metrics);
    let counted = "limit_exceeded_total{catalog=\"slow\",limit=\"pullSeconds\"} 1";
    assert!(text.contains(counted), "{text}");
    assert!(!text.contains("limit_exceeded_total{catalog=\"quick\""), "{text}");
    let budgets = [
        format!("document_memory_limit_bytes {}", 256 << 20),
        format!("download_limit_bytes {}", 4_u64 << 30),
        "document_memory_taken_bytes 0".to_owned(),
        "download_taken_bytes 0".to_owned(),
    ];
    assert!(budgets.iter().all(|line| text.contains(line)), "{text}");
}

/// The limit of the configuration counts, also if it is longer than that of a source which is read alone.
#[tokio::test(flavor = "multi_thread")]
async fn pull_may_take_as_long_as_its_limit() {
    let limits = SourceLimits::default();
    let settings = MirrorSettings {
        registry_wait: None,
        ..site::settings(&limits)
    };
    let images = site::images(&limits).with_settings(|images| images.pull_timeout = Duration::from_millis(100));
    let mirror = site::mirror(images, &MemoryStore::new(), settings, PollMetrics::default());
    let (registry, catalogs) = registry(&["slow"]).await;
    registry.delay(Kind::Blob, Duration::from_millis(300));
    let report = poll(&mirror, &catalogs[0]).await;
    assert_eq!(report.outcome, Outcome::Published, "{:?}", report.error_text());
}
