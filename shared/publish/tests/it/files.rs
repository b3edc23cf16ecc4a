//! Files that did not change since the last pull, which are not parsed again.

use std::fs;

use catalog_mirror_publish::{PollOptions, SourceLimits, ValidationMode};
use model::{Key, Kind, Outcome, Snapshot};
use storekit::Action;

use crate::validation::{Site, package};

/// Files by their names.
type Files = Vec<(&'static str, String)>;

/// Returns states of a folder that differ in which file has which lines of which package.
fn states() -> Vec<Files> {
    let [a, b, c] = ["a", "b", "c"].map(package);
    let bundle = |name: &str| format!("schema: olm.bundle\npackage: a\nname: {name}\n");
    vec![
        vec![("a", a.clone()), ("b", b.clone())],
        vec![("a", b.clone()), ("b", a.clone())],
        vec![("a", format!("# again\n{a}")), ("b", b.clone())],
        vec![("a", format!("{a}---\n{b}"))],
        vec![("a", format!("{a}---\n{b}")), ("c", c.clone())],
        vec![("a", a.clone()), ("b", b.clone()), ("c", c.clone())],
        vec![("a", a.clone()), ("b", b.clone()), ("more", bundle("a.v2"))],
        vec![
            ("a", a.clone()),
            ("b", b.clone()),
            ("also", bundle("a.v3")),
            ("c", "schema: x\n".to_owned()),
        ],
        vec![("a", a.clone()), ("b", format!("{b}---\n{}", bundle("a.v4")))],
        vec![("a", a.clone()), ("same", a.clone()), ("b", b)],
        vec![(".indexignore", "a.yaml\n".to_owned()), ("a", a), ("c", c)],
    ]
}

impl Site {
    async fn poll_files(&self, files: &Files) -> Snapshot {
        fs::remove_dir_all(self.folder.path()).unwrap();
        fs::create_dir(self.folder.path()).unwrap();
        for (name, text) in files {
            let name = if name.starts_with('.') {
                (*name).to_owned()
            } else {
                format!("{name}.yaml")
            };
            fs::write(self.folder.path().join(name), text).unwrap();
        }
        let options = PollOptions {
            accept_gone: true,
            ..PollOptions::default()
        };
        let report = self.mirror.poll(&self.catalog, options).await;
        assert!(report.outcome.is_success(), "{files:?}: {:?}", report.error);
        self.snapshot().await
    }

    /// Returns how often the index of the published state was read.
    fn index_reads(&self) -> usize {
        let log = self.store.take_log();
        let reads = log.iter().filter(|call| call.action == Action::Get);
        reads
            .filter(|call| matches!(call.key, Some(Key::Object(Kind::Index, _))))
            .count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_state_is_published_after_each_other_as_by_a_new_process() {
    let states = states();
    let mut fresh = Vec::new();
    for state in &states {
        fresh.push(Site::new(ValidationMode::Warn).poll_files(state).await);
    }
    for (from, before) in states.iter().enumerate() {
        for (to, state) in states.iter().enumerate().filter(|(to, _)| from != *to) {
            let site = Site::new(ValidationMode::Warn);
            site.poll_files(before).await;
            assert_eq!(site.index_reads(), 0);
            let snapshot = site.poll_files(state).await;
            assert_eq!(site.index_reads(), 1, "{from} {to}");
            assert_eq!(snapshot, fresh[to], "{from} {to}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_limits_parse_every_file_again() {
    let mut site = Site::new(ValidationMode::Warn);
    let states = states();
    site.poll_files(&states[0]).await;
    let mut limits = SourceLimits::default();
    limits.catalog.document.document_bytes = 20;
    site.catalog.limits = Some(limits);
    fs::write(site.folder.path().join("c.yaml"), "schema: x\n").unwrap();
    let report = site.mirror.poll(&site.catalog, PollOptions::default()).await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.error_text().unwrap().contains("a.yaml"), "{:?}", report.error);
}
