//! Content that looks like an accident: what is held back, for how long, and what lets it through.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use ::hold::{HoldRule, InstalledVersion};
use model::{Hold, Kind, Outcome, Status};
use olm::UpgradeStep;
use publish::{
    Env, HoldSettings, PollError, PollMetrics, PollOptions, Report, SourceLimits, ValidationMode,
};
use storekit::{Action, Call};
use tempfile::TempDir;

use crate::site::{Site, images, mirror, package, page, settings, status};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// Packages of a site: a third of them is four.
const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// A mirror of ten packages, with a clock by hand.
struct HoldSite {
    site: Site<TempDir>,
    /// Seconds since the epoch.
    clock: Arc<AtomicU64>,
    registry: prometheus_client::registry::Registry,
}

impl HoldSite {
    /// Returns a mirror that has published its first content at 1,000 days.
    async fn published() -> Self {
        let mut site = Site::folder(ValidationMode::Warn);
        let clock = Arc::new(AtomicU64::new(1000 * DAY));
        let now = clock.clone();
        let limits = SourceLimits::default();
        let mut settings = settings(&limits);
        settings.env = Env {
            clock: Arc::new(move || UNIX_EPOCH + Duration::from_secs(now.load(Ordering::SeqCst))),
            ..Env::default()
        };
        let mut registry = prometheus_client::registry::Registry::default();
        let metrics = PollMetrics::register(&mut registry);
        site.mirror = mirror(images(&limits), &site.store, settings, metrics);
        for name in NAMES {
            site.write(name, &package(name));
        }
        let site = Self {
            site,
            clock,
            registry,
        };
        assert_eq!(site.poll().await.outcome, Outcome::Published);
        site
    }

    fn pass(&self, seconds: u64) {
        self.clock.fetch_add(seconds, Ordering::SeqCst);
    }

    /// Writes the first packages with a channel of this name.
    fn write_channel(&self, packages: usize, channel: &str) {
        for name in &NAMES[..packages] {
            self.site
                .write(name, &package(name).replace("stable", channel));
        }
    }

    async fn poll(&self) -> Report {
        self.site.poll().await
    }

    async fn outcome(&self) -> Outcome {
        self.poll().await.outcome
    }

    async fn status(&self) -> Status {
        status(&self.site.store, &self.site.catalog).await.unwrap()
    }

    async fn hold(&self) -> Option<Hold> {
        let status = self.status().await;
        status.held().map(|(_, hold)| hold.clone())
    }

    fn has_metric(&self, line: &str) -> bool {
        page(&self.registry).lines().any(|found| found == line)
    }
}

fn is_known(report: &Report) -> bool {
    matches!(report.error, Some(PollError::Held { is_known: true, .. }))
}

#[tokio::test(flavor = "multi_thread")]
async fn accident_is_held_for_three_days_and_told_once() {
    let site = HoldSite::published().await;
    let before = site.site.snapshot().await;
    site.write_channel(4, "fast");
    let report = site.poll().await;
    assert_eq!(report.outcome, Outcome::Refused);
    let text = report.error_text().unwrap();
    let expected = "the new content looks like an accident and is held back until 1972-09-30T00:00:00Z: \
                    the channels of 4 of 10 packages change at once (many-channels): a: the channel stable is gone, \
                    b: the channel stable is gone, c: the channel stable is gone, d: the channel stable is gone; \
                    `catalog-mirror diff --held c` shows it, `catalog-mirror release c` or `poll --force` publishes it";
    assert_eq!(text, expected);
    assert_eq!(report.objects_published, 0);
    assert_eq!(site.site.snapshot().await, before);
    assert!(site.has_metric("held{catalog=\"c\"} 1"));
    let day = |day: u64| UNIX_EPOCH + Duration::from_secs(day * DAY);
    let expected = Hold {
        since: day(1000),
        until: Some(day(1003)),
        released: false,
    };
    assert_eq!(site.hold().await, Some(expected));
    site.pass(3 * DAY - 1);
    let again = site.poll().await;
    assert!(
        is_known(&again) && again.error_text().as_ref() == Some(&text),
        "{again:?}"
    );
    site.pass(1);
    assert_eq!(site.outcome().await, Outcome::Published);
    assert_eq!(site.hold().await, None);
    assert!(site.has_metric("held{catalog=\"c\"} 0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn released_revision_is_published_and_another_one_is_not() {
    let site = HoldSite::published().await;
    let store = &site.site.store;
    let name = &site.site.catalog.name;
    assert_eq!(publish::release(store, name).await.unwrap(), None);
    site.write_channel(4, "fast");
    assert_eq!(site.outcome().await, Outcome::Refused);
    let released = publish::release(store, name).await.unwrap().unwrap();
    assert!(released.held.unwrap().released);
    site.write_channel(5, "fast");
    // Another revision: not what was looked at.
    assert_eq!(site.outcome().await, Outcome::Refused);
    assert!(!site.hold().await.unwrap().released);
    publish::release(store, name).await.unwrap().unwrap();
    assert_eq!(site.outcome().await, Outcome::Published);
    assert_eq!(site.hold().await, None);
}

/// Two mirrors poll one catalog, and one of them has read the status before the other found
/// anything.
#[tokio::test(flavor = "multi_thread")]
async fn hold_and_release_survive_polls_that_began_before_them() {
    let site = HoldSite::published().await;
    let store = &site.site.store;
    let catalog = &site.site.catalog;
    let began = PollOptions {
        before: Some(site.status().await),
        ..PollOptions::default()
    };
    site.write_channel(4, "fast");
    assert_eq!(site.outcome().await, Outcome::Refused);
    let held = site.hold().await.unwrap();
    site.pass(HOUR);
    let late = site.site.mirror.poll(catalog, began.clone()).await;
    assert_eq!(late.outcome, Outcome::Refused);
    assert_eq!(site.hold().await, Some(held.clone()));
    let unreleased = PollOptions {
        before: Some(site.status().await),
        ..PollOptions::default()
    };
    publish::release(store, &catalog.name).await.unwrap();
    let released = Hold {
        released: true,
        ..held
    };
    let late = site.site.mirror.poll(catalog, began.clone()).await;
    assert_eq!(late.outcome, Outcome::Refused);
    assert_eq!(site.hold().await, Some(released.clone()));
    // Two that have found the content before the accident. One of them knows of the hold.
    site.write_channel(4, "stable");
    for began in [began, unreleased] {
        let late = site.site.mirror.poll(catalog, began).await;
        assert_eq!(late.outcome, Outcome::Unchanged);
        assert_eq!(site.hold().await, Some(released.clone()));
    }
    site.write_channel(4, "fast");
    assert_eq!(site.outcome().await, Outcome::Published);
    assert_eq!(site.hold().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn forced_poll_and_owner_publish_what_is_held() {
    let site = HoldSite::published().await;
    site.write_channel(4, "fast");
    assert_eq!(site.outcome().await, Outcome::Refused);
    assert_eq!(site.site.poll_forced().await.outcome, Outcome::Published);
    assert_eq!(site.hold().await, None);
    assert_eq!(site.outcome().await, Outcome::Unchanged);
    let accepting = PollOptions {
        accept_gone: true,
        ..PollOptions::default()
    };
    site.write_channel(4, "slow");
    let mut chosen = site.site.catalog.clone();
    chosen.hold.rules = Some(HoldRule::DEFAULT.into());
    let report = site.site.mirror.poll(&chosen, accepting.clone()).await;
    assert_eq!(
        report.outcome,
        Outcome::Refused,
        "rules that the owner chose"
    );
    let report = site.site.mirror.poll(&site.site.catalog, accepting).await;
    assert_eq!(report.outcome, Outcome::Published);
}

#[tokio::test(flavor = "multi_thread")]
async fn source_that_alternates_stays_at_its_first_state() {
    let site = HoldSite::published().await;
    let before = site.site.snapshot().await;
    for _ in 0..5 {
        site.write_channel(10, "fast");
        assert_eq!(site.outcome().await, Outcome::Refused);
        site.pass(2 * DAY);
        site.write_channel(10, "stable");
        assert_eq!(site.outcome().await, Outcome::Unchanged);
        assert_eq!(site.hold().await, None);
    }
    assert_eq!(site.site.snapshot().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_of_held_content_do_not_postpone_its_end() {
    let site = HoldSite::published().await;
    for (packages, expected) in [
        (4, Outcome::Refused),
        (5, Outcome::Refused),
        (6, Outcome::Refused),
        (7, Outcome::Published),
    ] {
        site.write_channel(packages, "fast");
        assert_eq!(site.outcome().await, expected, "{packages}");
        site.pass(DAY);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_that_goes_back_does_not_lengthen_the_hold() {
    let site = HoldSite::published().await;
    site.write_channel(4, "fast");
    assert_eq!(site.outcome().await, Outcome::Refused);
    site.clock.fetch_sub(100 * DAY, Ordering::SeqCst);
    site.write_channel(5, "fast");
    assert_eq!(site.outcome().await, Outcome::Refused);
    site.pass(3 * DAY);
    assert_eq!(site.outcome().await, Outcome::Published);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_changes_after_a_long_time_are_no_accident() {
    let site = HoldSite::published().await;
    site.pass(3 * DAY + 1);
    site.write_channel(10, "fast");
    assert_eq!(site.outcome().await, Outcome::Published);
    // Bundles in place are one at any time.
    site.pass(30 * DAY);
    for name in NAMES {
        site.site
            .write(name, &package(name).replace("r.example", "q.example"));
    }
    let text = site.poll().await.error_text().unwrap();
    assert!(
        text.contains("bundles of 10 of 10 packages change in place (many-bundles)"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn never_holds_until_a_person_decides_and_off_never_holds() {
    let mut site = HoldSite::published().await;
    site.site.catalog.hold.time = None;
    site.write_channel(4, "fast");
    let text = site.poll().await.error_text().unwrap();
    assert!(
        text.contains("is held back until it is released: "),
        "{text}"
    );
    site.pass(1000 * DAY);
    assert_eq!(site.outcome().await, Outcome::Refused);
    site.site.catalog.hold = HoldSettings {
        rules: Some([].into()),
        ..HoldSettings::default()
    };
    assert_eq!(site.outcome().await, Outcome::Published);
}

#[tokio::test(flavor = "multi_thread")]
async fn chosen_rules_hold_single_packages() {
    let mut site = HoldSite::published().await;
    site.site.catalog.hold.rules = Some(HoldRule::ALL.iter().copied().collect());
    site.site.catalog.hold.installed = vec![InstalledVersion {
        package: "b".to_owned(),
        channel: None,
        start: UpgradeStep::start("b.v1", None),
    }];
    let held = async |package: &str, text: &str| {
        site.site.write(package, text);
        let report = site.poll().await;
        let error = report.error_text().unwrap_or_default();
        site.site.write(package, &self::package(package));
        assert_eq!(site.outcome().await, Outcome::Unchanged);
        error
    };
    let worse = package("a") + "---\nschema: olm.bundle\npackage: a\nname: a.v0\n";
    for (name, text, expected) in [
        ("a", worse, "(validation)"),
        (
            "a",
            package("a").replace("r.example", "q.example"),
            "(bundle)",
        ),
        ("a", package("a").replace("stable", "fast"), "(channel)"),
        ("b", package("b").replace("b.v1", "b.v2"), "(installed)"),
        (
            "a",
            String::new(),
            "1 of 10 packages are gone (package): a: is gone",
        ),
    ] {
        let error = held(name, &text).await;
        assert!(error.contains(expected), "{expected} is not in {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn update_of_one_package_is_not_compared() {
    let site = HoldSite::published().await;
    for (packages, is_compared) in [(1, false), (2, true)] {
        let before = site.site.snapshot().await;
        site.write_channel(packages, &format!("fast-{packages}"));
        site.site.store.take_log();
        assert_eq!(site.outcome().await, Outcome::Published);
        let old = before.package("a").unwrap().stored.with_kind(Kind::Package);
        let calls = site.site.store.take_log();
        let is_read = |call: &Call| call.action == Action::Get && call.key == Some(old.key());
        assert_eq!(calls.iter().any(is_read), is_compared, "{packages}");
    }
}
