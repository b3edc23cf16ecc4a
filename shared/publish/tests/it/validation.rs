//! The validation of new content: what is published, what is refused, and what is validated again.

use std::{collections::BTreeMap, fs, sync::Arc};

use catalog_mirror_publish::{
    Catalog, Mirror, MirrorSettings, PollError, PollMetrics, PollOptions, Report, ValidationMode,
};
use model::{Current, Facts, FindingSeverity, Key, Outcome, PackageFindings, Snapshot, Status, ValidationCounts};
use olm::{FINDINGS, FINDINGS_MAX};
use source::{SourceSettings, Sources};
use store::{StoreExt, read_stored};
use storekit::MemoryStore;
use tempfile::TempDir;
use upkeep::verify;

/// A folder, and a mirror of it in memory.
pub(crate) struct Site {
    pub(crate) folder: TempDir,
    pub(crate) store: MemoryStore,
    pub(crate) mirror: Mirror,
    pub(crate) catalog: Catalog,
}

const VALID: [&str; 3] = ["a", "b", "c"];

/// Returns a valid package of one bundle.
pub(crate) fn package(package: &str) -> String {
    format!(
        "schema: olm.package\nname: {package}\ndefaultChannel: stable\n---\n\
         schema: olm.channel\npackage: {package}\nname: stable\nentries: [{{name: {package}.v1}}]\n---\n\
         schema: olm.bundle\npackage: {package}\nname: {package}.v1\nimage: r.example/{package}:v1\n\
         properties: [{{type: olm.package, value: {{packageName: {package}, version: 1.0.0}}}}]\n"
    )
}

/// Returns a package without channels, which OLM refuses for two reasons.
fn broken(package: &str) -> String {
    format!("schema: olm.package\nname: {package}\ndefaultChannel: stable\n")
}

impl Site {
    pub(crate) fn new(validation: ValidationMode) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = MemoryStore::new();
        let source = source::Source::Dir(folder.path().to_owned());
        let site = Self {
            mirror: mirror(&store, PollMetrics::default()),
            catalog: Catalog {
                validation,
                ..Catalog::new("c".parse().unwrap(), source)
            },
            folder,
            store,
        };
        VALID.iter().for_each(|name| site.write(name, &package(name)));
        site
    }

    fn write(&self, package: &str, text: &str) {
        fs::write(self.folder.path().join(format!("{package}.yaml")), text).unwrap();
    }

    async fn poll(&self) -> Report {
        self.mirror.poll(&self.catalog, PollOptions::default()).await
    }

    async fn poll_forced(&self) -> Report {
        let options = PollOptions {
            force: true,
            ..PollOptions::default()
        };
        self.mirror.poll(&self.catalog, options).await
    }

    pub(crate) async fn snapshot(&self) -> Snapshot {
        let key = Key::Current("c".parse().unwrap());
        let (current, _) = self.store.read_document::<Current>(&key).await.unwrap().unwrap();
        read_stored(&self.store, &current.snapshot.digest).await.unwrap()
    }

    async fn findings(&self) -> BTreeMap<String, PackageFindings> {
        let findings = self.snapshot().await.facts[FINDINGS.name];
        let facts: Facts<PackageFindings> = read_stored(&self.store, &findings).await.unwrap();
        assert!(facts.shortened.is_empty());
        facts.packages
    }

    async fn status(&self) -> Status {
        let key = Key::Status("c".parse().unwrap());
        self.store.read_document(&key).await.unwrap().unwrap().0
    }
}

fn mirror(store: &MemoryStore, metrics: PollMetrics) -> Mirror {
    let images = Sources::new(SourceSettings::default()).unwrap();
    Mirror::new(images, Arc::new(store.clone()), MirrorSettings::default(), metrics)
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
    let site = Site::new(ValidationMode::Warn);
    site.write("b", &broken("b"));
    site.write(
        "other",
        "schema: olm.bundle.v9\npackage: a\n---\nschema: example.io\npackage: a\n",
    );
    let report = site.poll().await;
    assert_eq!((report.outcome, report.packages_validated), (Outcome::Published, 3));
    let findings = site.findings().await;
    assert_eq!(findings.keys().collect::<Vec<_>>(), ["a", "b"]);
    let [a, b] = ["a", "b"].map(|name| &findings[name]);
    assert_eq!((a.counts, b.counts), (counts(0, 0, 2), counts(2, 0, 0)));
    let schemas: Vec<(&str, u64)> = a.schemas.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(schemas, [("example.io", 1), ("olm.bundle.v9", 1)]);
    let rules: Vec<&str> = b.findings.iter().map(|finding| finding.rule.as_str()).collect();
    assert_eq!(rules, ["package-no-channel", "default-channel-unknown"]);
    assert_eq!(site.status().await.validation, Some(counts(2, 0, 2)));
    assert_eq!(verify(&site.store, &"c".parse().unwrap()).await.unwrap().findings, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn icon_is_a_warning_that_is_never_refused() {
    let site = Site::new(ValidationMode::Refuse);
    let icon = "defaultChannel: stable\nicon: {base64data: AAAA, mediatype: image/png}";
    site.write("b", &package("b").replacen("defaultChannel: stable", icon, 1));
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    let findings = site.findings().await;
    assert_eq!(findings["b"].counts, counts(0, 1, 0));
    assert_eq!(findings["b"].findings[0].severity, FindingSeverity::Warning);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuse_keeps_the_old_state_until_it_is_forced() {
    let site = Site::new(ValidationMode::Refuse);
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    let before = site.snapshot().await;
    site.write("b", &broken("b"));
    let report = site.poll().await;
    assert!(matches!(report.error, Some(PollError::Refused(_))), "{report:?}");
    assert_eq!((report.outcome, report.failed_for_good()), (Outcome::Refused, false));
    assert_eq!(
        (report.packages_validated, report.objects_published),
        (1, 0),
        "{report:?}"
    );
    let error = report.error_text().unwrap();
    let expected =
        "package b: the package has no channel; package b, channel stable: the default channel is not a channel";
    assert!(error.contains(expected) && error.contains("validate: warn"), "{error}");
    assert_eq!(site.snapshot().await, before);
    assert_eq!(
        site.status().await.validation,
        Some(counts(0, 0, 0)),
        "of what is published"
    );
    // The verdict is known: nothing is pulled or validated until something changes.
    let again = site.poll().await;
    assert!(
        matches!(again.error, Some(PollError::KnownRevision { .. })),
        "{again:?}"
    );
    assert_eq!((again.outcome, again.packages_validated), (Outcome::Refused, 0));
    let warn = Catalog {
        validation: ValidationMode::Warn,
        ..site.catalog.clone()
    };
    let forced = site.poll_forced().await;
    assert_eq!((forced.outcome, forced.error_text()), (Outcome::Published, None));
    assert_eq!(site.status().await.validation, Some(counts(2, 0, 0)));
    assert_eq!(
        site.mirror.poll(&warn, PollOptions::default()).await.outcome,
        Outcome::Unchanged
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_revision_is_polled_again_with_another_setting() {
    let site = Site::new(ValidationMode::Refuse);
    site.write("b", &broken("b"));
    assert_eq!(site.poll().await.outcome, Outcome::Refused);
    let warn = Catalog {
        validation: ValidationMode::Warn,
        ..site.catalog.clone()
    };
    assert_eq!(
        site.mirror.poll(&warn, PollOptions::default()).await.outcome,
        Outcome::Published
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_packages_are_not_validated_again() {
    let site = Site::new(ValidationMode::Warn);
    site.write("b", &broken("b"));
    assert_eq!(site.poll().await.packages_validated, 3);
    let first = site.findings().await;
    site.write("c", &broken("c"));
    let report = site.poll().await;
    assert_eq!((report.outcome, report.packages_validated), (Outcome::Published, 1));
    let second = site.findings().await;
    assert_eq!((first.len(), &second["b"]), (1, &first["b"]));
    assert_eq!(second["c"].counts, counts(2, 0, 0));
    // A forced poll relies on nothing that is stored, and comes to the same findings.
    let forced = site.poll_forced().await;
    assert_eq!((forced.packages_validated, site.findings().await), (3, second));
}

#[tokio::test(flavor = "multi_thread")]
async fn package_has_its_first_findings_and_the_number_of_all() {
    let site = Site::new(ValidationMode::Warn);
    let entries = (0..=FINDINGS_MAX).map(|at| format!("{{name: b.v{at}}}"));
    let entries = entries.collect::<Vec<_>>().join(", ");
    site.write("b", &package("b").replace("{name: b.v1}", &entries));
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    let first = site.findings().await;
    assert_eq!(first["b"].findings.len(), FINDINGS_MAX);
    assert!(first["b"].counts.errors > FINDINGS_MAX as u64);
    site.write("c", &broken("c"));
    assert_eq!(site.poll().await.packages_validated, 1, "c");
    assert_eq!(site.findings().await["b"], first["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn off_publishes_without_findings_and_without_counts() {
    let mut site = Site::new(ValidationMode::Warn);
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    site.catalog.validation = ValidationMode::Off;
    site.write("b", &broken("b"));
    let report = site.poll().await;
    assert_eq!((report.outcome, report.packages_validated), (Outcome::Published, 0));
    assert_eq!(
        (
            site.snapshot().await.facts.contains_key(FINDINGS.name),
            site.status().await.validation
        ),
        (false, None)
    );
    // The state has no findings, as that of an older program: everything is validated once.
    site.catalog.validation = ValidationMode::Warn;
    site.write("a", &broken("a"));
    assert_eq!(site.poll().await.packages_validated, 3);
    let found = site.findings().await;
    assert_eq!(
        (found["a"].counts, found["b"].counts),
        (counts(2, 0, 0), counts(2, 0, 0))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_findings_are_written_again() {
    let site = Site::new(ValidationMode::Warn);
    site.write("b", &broken("b"));
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    let (before, expected) = (site.snapshot().await, site.findings().await);
    let key = before.facts(FINDINGS.name).unwrap().key();
    store::Store::delete(&site.store, &key).await.unwrap();
    // The hourly look at the stored objects, which a new process begins with.
    let report = mirror(&site.store, PollMetrics::default())
        .poll(&site.catalog, PollOptions::default())
        .await;
    assert_eq!(report.error_text(), None);
    assert_eq!((site.snapshot().await, site.findings().await), (before, expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn metric_has_the_findings_of_what_is_published_also_after_a_restart() {
    let site = Site::new(ValidationMode::Warn);
    site.write("b", &broken("b"));
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = PollMetrics::register(&mut registry);
    let restarted = mirror(&site.store, metrics);
    let report = restarted.poll(&site.catalog, PollOptions::default()).await;
    assert_eq!(report.outcome, Outcome::Unchanged);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "validation_findings{catalog=\"c\",severity=\"error\"} 2",
        "validation_findings{catalog=\"c\",severity=\"warning\"} 0",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}
