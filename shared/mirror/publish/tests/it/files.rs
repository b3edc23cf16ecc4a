//! Files that did not change since the last pull, which are not parsed again.

use std::fs;

use model::{Key, Kind, Outcome, SeenPackage, Snapshot};
use publish::{PollOptions, SourceLimits, ValidationMode};
use storekit::{Action, Call};
use tempfile::TempDir;

use crate::site::{Site, package};

/// Files by their names.
type Files = Vec<(&'static str, String)>;

/// Returns states of a folder that differ in which file has which lines of which package.
fn states() -> Vec<Files> {
    let [a, b, c] = ["a", "b", "c"].map(package);
    let bundle = |name: &str| format!("schema: olm.bundle\npackage: a\nname: {name}\n");
    vec![
        vec![("a.yaml", a.clone()), ("b.yaml", b.clone())],
        vec![("a.yaml", b.clone()), ("b.yaml", a.clone())],
        vec![("a.yaml", format!("# again\n{a}")), ("b.yaml", b.clone())],
        vec![("a.yaml", format!("{a}---\n{b}"))],
        vec![("a.yaml", format!("{a}---\n{b}")), ("c.yaml", c.clone())],
        vec![
            ("a.yaml", a.clone()),
            ("b.yaml", b.clone()),
            ("c.yaml", c.clone()),
        ],
        vec![
            ("a.yaml", a.clone()),
            ("b.yaml", b.clone()),
            ("more.yaml", bundle("a.v2")),
        ],
        vec![
            ("a.yaml", a.clone()),
            ("b.yaml", b.clone()),
            ("also.yaml", bundle("a.v3")),
            ("c.yaml", "schema: x\n".to_owned()),
        ],
        vec![
            ("a.yaml", a.clone()),
            ("b.yaml", format!("{b}---\n{}", bundle("a.v4"))),
        ],
        vec![
            ("a.yaml", a.clone()),
            ("same.yaml", a.clone()),
            ("b.yaml", b),
        ],
        vec![
            (".indexignore", "a.yaml\n".to_owned()),
            ("a.yaml", a),
            ("c.yaml", c),
        ],
    ]
}

impl Site<TempDir> {
    async fn poll_files(&self, files: &Files) -> Snapshot {
        fs::remove_dir_all(self.origin.path()).unwrap();
        fs::create_dir(self.origin.path()).unwrap();
        for (name, text) in files {
            fs::write(self.origin.path().join(name), text).unwrap();
        }
        let options = PollOptions {
            accept_gone: true,
            ..PollOptions::default()
        };
        let report = self.mirror.poll(&self.catalog, options).await;
        assert!(report.outcome.is_success(), "{files:?}: {:?}", report.error);
        let mut snapshot = self.snapshot().await;
        // The days of what is gone are kept.
        let days = snapshot.facts.remove(SeenPackage::KIND);
        assert!(days.is_some(), "{files:?}");
        snapshot
    }

    /// Returns how often the index of a published state was read since the last call.
    fn index_reads(&self) -> usize {
        let is_index = |call: &&Call| matches!(call.key, Some(Key::Object(Kind::Index, _)));
        let calls = self.store.take_log();
        let calls_of_indexes = calls.iter().filter(is_index);
        calls_of_indexes
            .filter(|call| call.action == Action::Get)
            .count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_state_is_published_after_each_other_as_by_a_new_process() {
    let states = states();
    let mut fresh = Vec::new();
    for state in &states {
        fresh.push(Site::folder(ValidationMode::Warn).poll_files(state).await);
    }
    for (from, before) in states.iter().enumerate() {
        for (to, state) in states.iter().enumerate().filter(|(to, _)| from != *to) {
            let site = Site::folder(ValidationMode::Warn);
            site.poll_files(before).await;
            assert_eq!(site.index_reads(), 0);
            assert_eq!(site.poll_files(state).await, fresh[to], "{from} {to}");
            assert_eq!(site.index_reads(), 1, "{from} {to}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_limits_parse_every_file_again() {
    let mut site = Site::folder(ValidationMode::Warn);
    let states = states();
    site.poll_files(&states[0]).await;
    let mut limits = SourceLimits::default();
    limits.catalog.document.document_bytes = 20;
    site.catalog.limits = Some(limits);
    fs::write(site.origin.path().join("c.yaml"), "schema: x\n").unwrap();
    let report = site.poll().await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(
        report.error_text().unwrap().contains("a.yaml"),
        "{:?}",
        report.error
    );
}
