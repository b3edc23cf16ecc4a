//! The validation of new content: what is published, what is refused, and what is validated again.

use std::collections::BTreeMap;

use model::{Facts, FindingSeverity, Outcome, PackageFindings, ValidationCounts};
use olm::{FINDINGS, FINDINGS_MAX};
use prometheus_client::registry::Registry;
use publish::{Catalog, PollError, PollMetrics, PollOptions, Report, SourceLimits, ValidationMode};
use store::read_stored;
use tempfile::TempDir;

use crate::site::{Site, images, mirror, package, page, settings};

/// Returns a package without channels, which OLM refuses for two reasons.
fn broken(package: &str) -> String {
    format!("schema: olm.package\nname: {package}\ndefaultChannel: stable\n")
}

impl Site<TempDir> {
    /// Polls as a new process does.
    async fn poll_restarted(&self, metrics: PollMetrics) -> Report {
        let limits = SourceLimits::default();
        let restarted = mirror(images(&limits), &self.store, settings(&limits), metrics);
        restarted.poll(&self.catalog, PollOptions::default()).await
    }

    /// Polls with another mode of validation.
    async fn poll_as(&self, validation: ValidationMode) -> Report {
        let catalog = Catalog {
            validation,
            ..self.catalog.clone()
        };
        self.mirror.poll(&catalog, PollOptions::default()).await
    }

    async fn findings(&self) -> BTreeMap<String, PackageFindings> {
        let findings = self.snapshot().await.facts[FINDINGS.name];
        let facts: Facts<PackageFindings> = read_stored(&self.store, &findings).await.unwrap();
        assert!(facts.shortened.is_empty());
        facts.packages
    }
}

fn counts(errors: u64, warnings: u64, unknown_schemas: u64) -> ValidationCounts {
    ValidationCounts {
        errors,
        warnings,
        unknown_schemas,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn warn_publishes_and_names_the_findings() {
    let site = Site::folder(ValidationMode::Warn);
    site.write("b", &broken("b"));
    let unknown = "schema: olm.bundle.v9\npackage: a\n---\nschema: example.io\npackage: a\n";
    site.write("other", unknown);
    let report = site.poll().await;
    assert_eq!(
        (report.outcome, report.packages_validated),
        (Outcome::Published, 3)
    );
    let findings = site.findings().await;
    assert_eq!(findings.keys().collect::<Vec<_>>(), ["a", "b"]);
    let [a, b] = ["a", "b"].map(|name| &findings[name]);
    assert_eq!((a.counts, b.counts), (counts(0, 0, 2), counts(2, 0, 0)));
    let schemas: Vec<(&str, u64)> = a
        .schemas
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(schemas, [("example.io", 1), ("olm.bundle.v9", 1)]);
    let rules: Vec<&str> = b
        .findings
        .iter()
        .map(|finding| finding.rule.as_str())
        .collect();
    assert_eq!(rules, ["package-no-channel", "default-channel-unknown"]);
    assert_eq!(site.status().await.validation, Some(counts(2, 0, 2)));
    site.is_sound("with findings").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refuse_keeps_the_old_state_until_it_is_forced_or_allowed() {
    let site = Site::folder(ValidationMode::Refuse);
    // A warning is not refused.
    let icon = "defaultChannel: stable\nicon: {base64data: AAAA, mediatype: image/png}";
    site.write(
        "a",
        &package("a").replacen("defaultChannel: stable", icon, 1),
    );
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    let warned = site.findings().await.remove("a").unwrap();
    assert_eq!(warned.counts, counts(0, 1, 0));
    assert_eq!(warned.findings[0].severity, FindingSeverity::Warning);
    let before = site.snapshot().await;
    site.write("b", &package("b").replacen("stable", "other", 1));
    let report = site.poll().await;
    assert!(
        matches!(report.error, Some(PollError::Refused(_))),
        "{report:?}"
    );
    assert_eq!(
        (report.outcome, report.failed_for_good()),
        (Outcome::Refused, false)
    );
    assert_eq!(
        (report.packages_validated, report.objects_published),
        (1, 0)
    );
    let error = report.error_text().unwrap();
    let expected = "it has 1 error, as `catalog-mirror validate` lists them: package b, channel other: the default channel is not a \
                    channel of the package; correct the catalog, publish it as it is with `--force`, or set validate: warn";
    assert!(error.ends_with(expected), "{error}");
    assert_eq!(site.snapshot().await, before);
    let validation = site.status().await.validation;
    assert_eq!(validation, Some(counts(0, 1, 0)), "of what is published");
    // The verdict is known: nothing is pulled or validated until something changes.
    let again = site.poll().await;
    let is_known = matches!(again.error, Some(PollError::KnownRevision(_)));
    assert!(is_known, "{again:?}");
    assert_eq!(
        (again.outcome, again.packages_validated),
        (Outcome::Refused, 0)
    );
    let forced = site.poll_forced().await;
    assert_eq!(
        (forced.outcome, forced.error_text()),
        (Outcome::Published, None)
    );
    assert_eq!(site.status().await.validation, Some(counts(1, 1, 0)));
    let same = site.poll_as(ValidationMode::Warn).await;
    assert_eq!(same.outcome, Outcome::Unchanged);
    // A revision that was refused is polled again with another setting.
    site.write("c", &broken("c"));
    let error = site.poll().await.error_text().unwrap();
    let expected = "package b, channel other: the default channel is not a channel of the package; package c: the package has no \
                    channel; package c, channel stable: the default channel";
    assert!(error.contains("it has 3 errors,"), "{error}");
    assert!(error.contains(expected), "{error}");
    let allowed = site.poll_as(ValidationMode::Warn).await;
    assert_eq!(allowed.outcome, Outcome::Published);
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_packages_are_not_validated_again() {
    let site = Site::folder(ValidationMode::Warn);
    let entries = (0..=FINDINGS_MAX).map(|at| format!("{{name: b.v{at}}}"));
    let entries = entries.collect::<Vec<_>>().join(", ");
    site.write("b", &package("b").replace("{name: b.v1}", &entries));
    assert_eq!(site.poll().await.packages_validated, 3);
    let first = site.findings().await;
    assert_eq!(
        first["b"].findings.len(),
        FINDINGS_MAX,
        "the first ones of more"
    );
    assert!(first["b"].counts.errors > FINDINGS_MAX as u64);
    site.write("c", &broken("c"));
    let report = site.poll().await;
    assert_eq!(
        (report.outcome, report.packages_validated),
        (Outcome::Published, 1)
    );
    let second = site.findings().await;
    assert_eq!((first.len(), &second["b"]), (1, &first["b"]));
    assert_eq!(second["c"].counts, counts(2, 0, 0));
    // A forced poll relies on nothing that is stored, and comes to the same findings.
    let forced = site.poll_forced().await;
    assert_eq!(
        (forced.packages_validated, site.findings().await),
        (3, second)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn off_publishes_without_findings_and_without_counts() {
    let mut site = Site::folder(ValidationMode::Warn);
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    site.catalog.validation = ValidationMode::Off;
    site.write("b", &broken("b"));
    let report = site.poll().await;
    assert_eq!(
        (report.outcome, report.packages_validated),
        (Outcome::Published, 0)
    );
    assert!(!site.snapshot().await.facts.contains_key(FINDINGS.name));
    assert_eq!(site.status().await.validation, None);
    // The state has no findings, as that of an older program: everything is validated once.
    site.catalog.validation = ValidationMode::Warn;
    site.write("a", &broken("a"));
    assert_eq!(site.poll().await.packages_validated, 3);
    let found = site.findings().await;
    let found = found
        .iter()
        .map(|(name, found)| (name.as_str(), found.counts));
    assert_eq!(
        Vec::from_iter(found),
        [("a", counts(2, 0, 0)), ("b", counts(2, 0, 0))]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn restarted_mirror_counts_the_published_findings_and_writes_lost_ones_again() {
    let site = Site::folder(ValidationMode::Warn);
    site.write("b", &broken("b"));
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    let (before, expected) = (site.snapshot().await, site.findings().await);
    let mut registry = Registry::default();
    let report = site
        .poll_restarted(PollMetrics::register(&mut registry))
        .await;
    assert_eq!(report.outcome, Outcome::Unchanged);
    let text = page(&registry);
    for line in [
        "validation_findings{catalog=\"c\",severity=\"error\"} 2",
        "validation_findings{catalog=\"c\",severity=\"warning\"} 0",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let key = before.facts(FINDINGS.name).unwrap().key();
    store::Store::delete(&site.store, &key).await.unwrap();
    // The hourly look at the stored objects, which a new process begins with.
    let report = site.poll_restarted(PollMetrics::default()).await;
    assert_eq!(report.error_text(), None);
    assert_eq!(
        (site.snapshot().await, site.findings().await),
        (before, expected)
    );
}
