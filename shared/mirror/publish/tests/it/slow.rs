//! Registries that are too slow to wait for.

use std::{sync::Arc, time::Duration};

use model::Outcome;
use prometheus_client::registry::Registry as Metrics;
use publish::{Catalog, MirrorSettings, PollError, PollMetrics, PollOptions, SourceLimits};
use storekit::MemoryStore;
use testkit::{Kind, Registry, until};

use crate::site::{self, Site, image, images, layer, page, status};

/// Never within the time of a test.
const NEVER: Duration = Duration::from_secs(3600);

/// Two pulls at a time, each of which may wait a tenth of a second for its registry.
fn settings() -> MirrorSettings {
    MirrorSettings {
        side_by_side: 2,
        registry_wait: Some(Duration::from_millis(100)),
        ..site::settings(&SourceLimits::default())
    }
}

/// One pull at a time, which may wait for its registry.
fn patient() -> MirrorSettings {
    MirrorSettings {
        side_by_side: 1,
        registry_wait: None,
        ..settings()
    }
}

/// Returns a mirror of an image whose blobs come late.
async fn slow_site(settings: MirrorSettings, delay: Duration) -> Site<Registry> {
    let site = Site::registry(images(&settings.limits), settings).await;
    site.push(&image([layer("configs/a.yaml", "a")]));
    site.origin.delay(Kind::Blob, delay);
    site
}

/// Pushes an image for each name.
fn catalogs(registry: &Registry, names: impl Iterator<Item = String>) -> Vec<Catalog> {
    let catalogs = names.map(|name| {
        registry.push(&name, "v1", &image([layer("configs/a.yaml", &name)]));
        let source: source::Source = registry.reference(&name, "v1").parse().unwrap();
        Catalog::new(name.parse().unwrap(), source)
    });
    catalogs.collect()
}

/// Catalogs of a registry that answers no HEAD of a tag, or no blob, hold back no other catalog of
/// the round.
#[tokio::test(flavor = "multi_thread")]
async fn round_goes_on_beside_a_registry_that_hangs() {
    for kind in [Kind::Head, Kind::Blob] {
        let store = MemoryStore::new();
        let images = images(&SourceLimits::default());
        let mirror = site::mirror(images, &store, settings(), PollMetrics::default());
        let [hung_registry, quick_registry] = [Registry::start().await, Registry::start().await];
        let hung = catalogs(&hung_registry, (0..5).map(|at| format!("hung-{at}")));
        // More than are resolved at a time.
        let quick = catalogs(&quick_registry, (0..40).map(|at| format!("quick-{at}")));
        hung_registry.delay(kind, NEVER);
        let all = [&hung[..], &quick].concat();
        let round =
            tokio::spawn(async move { mirror.poll_all(&all, PollOptions::default()).await });
        for catalog in &quick {
            let is_published = async || {
                let status = status(&store, catalog).await;
                status.is_some_and(|status| status.outcome == Outcome::Published)
            };
            until("all quick catalogs are published", is_published).await;
        }
        let all_wait = async || hung_registry.count(kind) >= hung.len();
        until("each hung catalog gets a turn", all_wait).await;
        assert!(!round.is_finished());
        round.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_catalog_is_published_from_its_copy() {
    let site = slow_site(settings(), Duration::from_millis(300)).await;
    let report = site.poll().await;
    assert_eq!(
        report.outcome,
        Outcome::Published,
        "{:?}",
        report.error_text()
    );
    assert!(report.bytes_pulled > 0);
    // The config that was given up, then the copy: the config and the layer.
    assert_eq!(site.origin.count(Kind::Blob), 3);
    let status = site.status().await;
    assert_eq!(
        (status.outcome, status.open_pulls),
        (Outcome::Published, None)
    );
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
}

/// A process that dies while it copies an image has not read the image, so its death does not count
/// against it.
#[tokio::test(flavor = "multi_thread")]
async fn copying_is_not_recorded_as_open_pull() {
    let site = Arc::new(slow_site(settings(), NEVER).await);
    let polled = site.clone();
    let poll = tokio::spawn(async move { polled.poll().await });
    until("the image is copied", async || {
        site.origin.count(Kind::Blob) >= 2
    })
    .await;
    assert_eq!(site.status().await.open_pulls, None);
    poll.abort();
}

/// A catalog whose pull does not end, for whatever reason, gives its place back and names the
/// limit. Its own limit wins.
#[tokio::test(flavor = "multi_thread")]
async fn pull_that_takes_too_long_names_its_limit_and_is_counted() {
    let mut site = slow_site(patient(), NEVER).await;
    let mut metrics = Metrics::default();
    let metrics_of_polls = PollMetrics::register(&mut metrics);
    let limits = SourceLimits::default();
    site.mirror = site::mirror(
        images(&limits),
        &site.store,
        patient(),
        metrics_of_polls.clone(),
    );
    let quick = catalogs(&site.origin, ["quick".to_owned()].into_iter()).remove(0);
    site.catalog.limits = Some(SourceLimits {
        pull_time: Duration::from_millis(200),
        ..limits
    });
    let error = site.poll().await.error.unwrap();
    assert!(matches!(error, PollError::PullTime(_)), "{error:?}");
    assert!(error.text().contains("pullSeconds"), "{error:?}");
    site.origin.delay(Kind::Blob, Duration::ZERO);
    let report = site.mirror.poll(&quick, PollOptions::default()).await;
    assert_eq!(
        report.outcome,
        Outcome::Published,
        "{:?}",
        report.error_text()
    );
    metrics_of_polls.refresh([]);
    let text = page(&metrics);
    assert!(
        !text.contains("limit_exceeded_total{catalog=\"quick\""),
        "{text}"
    );
    for line in [
        "limit_exceeded_total{catalog=\"c\",limit=\"pullSeconds\"} 1",
        &format!("document_memory_limit_bytes {}", 256 << 20),
        &format!("download_limit_bytes {}", 4_u64 << 30),
        "document_memory_taken_bytes 0",
        "download_taken_bytes 0",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

/// The limit of the configuration counts, also if it is longer than that of a source which is read
/// alone.
#[tokio::test(flavor = "multi_thread")]
async fn pull_may_take_as_long_as_its_limit() {
    let mut site = slow_site(patient(), Duration::from_millis(300)).await;
    let images = images(&SourceLimits::default());
    let images = images.with_settings(|images| images.pull_timeout = Duration::from_millis(100));
    site.mirror = site::mirror(images, &site.store, patient(), PollMetrics::default());
    let report = site.poll().await;
    assert_eq!(
        report.outcome,
        Outcome::Published,
        "{:?}",
        report.error_text()
    );
}
