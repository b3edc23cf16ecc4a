//! Revisions that are not pulled again: under which the process died, and which cannot be
//! published.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use model::{Document as _, Key, OpenPulls, Outcome, Status};
use publish::{MirrorSettings, PollError, PollOptions};
use testkit::{Kind, Registry, until};
use tokio::task::{JoinSet, block_in_place};

use crate::support::binary::{Ran, Server};
use crate::support::catalogs;
use crate::support::site::{Site, ten};
use crate::support::work::Work;

const MINUTE: Duration = Duration::from_secs(60);

impl Site {
    async fn open_pulls(&self) -> u32 {
        let open: Option<OpenPulls> = self.status().await.and_then(|status| status.open_pulls);
        open.map_or(0, |open| open.count)
    }

    /// Lets the time of a pull pass, so that each open pull is a death.
    async fn let_pulls_end(&self) {
        let mut status = self.status().await.unwrap();
        let open = status.open_pulls.as_mut().unwrap();
        open.first_begun -= Duration::from_secs(601);
        open.last_begun -= Duration::from_secs(601);
        let key = Key::Status(self.catalog.name.clone());
        self.put(&key, status.to_bytes()).await;
    }

    /// Starts a poll, and drops it in the middle of its pull together with all that its process
    /// knew.
    async fn die(&mut self) {
        self.registry.delay(Kind::Blob, MINUTE);
        let before = self.open_pulls().await;
        let recorded = until("the pull is recorded", async || {
            self.open_pulls().await != before
        });
        tokio::select! {
            report = self.poll() => panic!("the poll ended: {report:?}"),
            () = recorded => {}
        }
        self.registry.delay(Kind::Blob, Duration::ZERO);
        self.restart_with(MirrorSettings {
            // Else the image of a suspect revision is copied first, which is not recorded.
            registry_wait: None,
            ..MirrorSettings::default()
        });
    }

    /// Polls, and returns the outcome with the number of requests.
    async fn poll_counted(&self) -> (Outcome, usize) {
        self.registry.reset();
        let outcome = self.poll().await.outcome;
        (outcome, self.registry.requests().len())
    }
}

/// Shells and CI tell by the exit code that a person has stopped a command.
#[tokio::test(flavor = "multi_thread")]
async fn poll_that_a_signal_stops_exits_with_128_and_the_number_of_the_signal() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let registry = Registry::start().await;
        registry.push("ns/index", "v1", &catalogs::image(&catalogs::example("v1")));
        registry.delay(Kind::Blob, MINUTE);
        let work = Work::new();
        let host = registry.host();
        let line = format!("poll --store store --catalog c={host}/ns/index:v1 --plain-http {host}");
        let mut command = work.command(&line);
        let mut poll = command.stdout(Stdio::null()).spawn().unwrap();
        until("the pull has begun", async || {
            registry.count(Kind::Blob) > 0
        })
        .await;
        let sent = Command::new("kill")
            .args(["-s", signal, &poll.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        let ended = block_in_place(|| poll.wait()).unwrap();
        assert_eq!(ended.code(), Some(code), "{signal}");
    }
}

#[test]
fn catalog_that_kills_the_process_again_and_again_does_not_stop_the_others() {
    let work = Work::new();
    work.write_all("bad", &vec![catalogs::package("killer", 1)]);
    work.write_all("good", &vec![catalogs::package("harmless", 1)]);
    let poll = |options: &str, marker: &str| {
        let line = format!(
            "poll --json --store store --catalog bad=dir:bad --catalog good=dir:good {options}"
        );
        Ran::of(work.command(&line).env("CATALOG_MIRROR_TEST_ABORT", marker))
    };
    // The last pull may still be running, for all that a process knows: a crash that repeats at once
    // is seen at the third time.
    for start in 1..=3 {
        assert_eq!(
            poll("", "killer").code,
            None,
            "start {start} dies of a signal"
        );
    }
    // Nor is one seen among processes that were started at the same time.
    let path = "store/catalogs/bad/status.json";
    let mut status: Status = serde_json::from_str(&work.read(path)).unwrap();
    status.open_pulls.as_mut().unwrap().first_begun -= Duration::from_secs(11);
    work.write(path, status.to_bytes());
    let reports = poll("", "killer").exits(1).json();
    let error = reports[0]["error"].as_str().unwrap();
    assert_eq!(
        [&reports[0]["catalog"], &reports[0]["outcome"]],
        ["bad", "failed"]
    );
    assert!(error.contains("failed for good"), "{error}");
    assert!(error.contains("--force"), "{error}");
    // The second start may have come to the good catalog first.
    let good = reports[1]["outcome"].as_str().unwrap();
    assert!(["published", "unchanged"].contains(&good), "{reports:?}");
    assert!(work.exists("store/catalogs/good/current.json"));
    let status = work.read("store/catalogs/bad/status.json");
    assert!(status.contains("failed for good"), "{status}");

    let forced = poll("--force bad", "killer");
    assert_eq!(forced.code, None, "a forced poll tries again");
    poll("", "killer").exits(1);
    poll("--force bad", "another marker").exits(0);
    poll("", "another marker").exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_that_is_stopped_in_a_pull_has_not_died() {
    let registry = Registry::builder().start().await;
    registry.push("ns/catalog", "latest", &catalogs::image(&ten()));
    registry.delay(Kind::Blob, MINUTE);
    let (work, host) = (Work::new(), registry.host());
    work.write(
        "catalogs.yaml",
        format!(
            "registries: {{plainHttp: ['{host}']}}\ncatalogs: [{{name: site, source: '{host}/ns/catalog:latest', interval: 1h}}]\n"
        ),
    );
    let server = Server::of(work.command("serve --store store --config catalogs.yaml"));
    let read =
        || fs::read_to_string(work.path("store/catalogs/site/status.json")).unwrap_or_default();
    until("a pull is recorded", async || read().contains("openPulls")).await;
    assert_eq!(server.terminate(), Some(0));
    let status = read();
    assert!(
        !status.contains("openPulls") && status.contains("has not ended"),
        "{status}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_deaths_in_a_row_fail_a_revision_and_ordinary_errors_do_not() {
    let mut site = Site::start().await;
    site.push(&ten());
    // A poll that runs out of its own time ends in an orderly way.
    site.registry.delay(Kind::Blob, MINUTE);
    let options = PollOptions {
        time: Some(Duration::from_secs(1)),
        ..PollOptions::default()
    };
    for _ in 0..3 {
        let report = site.mirror.poll(&site.catalog, options.clone()).await;
        assert!(
            matches!(report.error, Some(PollError::OutOfTime(_))),
            "{report:?}"
        );
        assert_eq!(site.open_pulls().await, 0);
    }
    site.die().await;
    assert_eq!(site.open_pulls().await, 1);
    // A success between two deaths ends the row.
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    assert_eq!(site.open_pulls().await, 0);

    site.push(&ten()[..9].to_vec());
    for death in 1..=2 {
        site.die().await;
        assert_eq!(site.open_pulls().await, death);
    }
    site.let_pulls_end().await;
    let (outcome, requests) = site.poll_counted().await;
    assert_eq!((outcome, requests), (Outcome::Failed, 1));
    let report = site.poll().await;
    let Some(PollError::Killer { deaths: 2, .. }) = report.error else {
        panic!("{report:?}");
    };
    assert!(report.failed_for_good());
    assert_eq!(site.current().await.serial, 1);
    // Nothing depends on the status: without it the revision is tried again. Another revision
    // always is.
    let (status, key) = (
        site.status().await.unwrap(),
        Key::Status(site.catalog.name.clone()),
    );
    site.store.lose(&key);
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    site.put(&key, status.to_bytes()).await;
    site.push(&ten()[..8].to_vec());
    assert_eq!(site.poll().await.outcome, Outcome::Published);
}

#[tokio::test(flavor = "multi_thread")]
async fn mirrors_that_pull_a_catalog_at_the_same_time_are_no_deaths() {
    let mut site = Site::start().await;
    site.push(&ten());
    site.registry.delay(Kind::Blob, Duration::from_millis(500));
    let mut polls = JoinSet::new();
    for _ in 0..8 {
        let (mirror, catalog) = (site.second_mirror(), site.catalog.clone());
        polls.spawn(async move { mirror.poll(&catalog, PollOptions::default()).await });
    }
    for report in polls.join_all().await {
        assert!(report.outcome.is_success(), "{report:?}");
    }
    assert_eq!(site.open_pulls().await, 0);
    site.restart_with(MirrorSettings::default());
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_revision_costs_one_request_until_something_else_changes() {
    let bad = || {
        let mut files = ten();
        files.push(("p9/extra.yaml".to_owned(), b"schema: [\n".to_vec()));
        files
    };
    for (files, outcome) in [
        (bad(), Outcome::Failed),
        (ten()[..6].to_vec(), Outcome::Refused),
    ] {
        let mut site = Site::published().await;
        site.push(&files);
        let (first, requests) = site.poll_counted().await;
        assert!(first == outcome && requests > 1, "the first poll pulls");
        let error = site.status().await.unwrap().error.unwrap();
        assert_eq!(
            error.contains("p9/extra.yaml"),
            outcome == Outcome::Failed,
            "{error}"
        );
        for _ in 0..2 {
            assert_eq!(site.poll_counted().await, (outcome, 1));
        }
        let error = site.status().await.unwrap().error.unwrap();
        assert!(error.contains("is not pulled again"), "{error}");
        // Another process has the same program and settings.
        site.restart_with(MirrorSettings::default());
        assert_eq!(site.poll_counted().await, (outcome, 1));
        let mut settings = MirrorSettings::default();
        settings.limits.catalog.packages = 19_999;
        site.restart_with(settings);
        let (again, requests) = site.poll_counted().await;
        assert!(again == outcome && requests > 1, "other limits: {requests}");
        assert_eq!(site.poll_counted().await, (outcome, 1));
        assert_eq!(site.current().await.serial, 1, "the old state stays");
        site.registry.reset();
        site.poll_forced().await;
        assert!(site.registry.requests().len() > 1, "a forced poll pulls");
        // It publishes what is suspicious, and not what cannot be read.
        let serial = if outcome == Outcome::Refused { 2 } else { 1 };
        assert_eq!(site.current().await.serial, serial);
        site.push(&ten()[1..].to_vec());
        assert_eq!(site.poll().await.outcome, Outcome::Published);
        // Of another revision.
        let is_rejected = site.status().await.unwrap().rejected.is_some();
        assert_eq!(is_rejected, outcome == Outcome::Failed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn suspicious_revision_is_pulled_again_when_another_state_is_published() {
    let site = Site::published().await;
    let few = catalogs::image(&ten()[..6]);
    site.push_image(&few);
    assert_eq!(site.poll().await.outcome, Outcome::Refused);
    site.push(&ten()[..8].to_vec());
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    site.push_image(&few);
    assert_eq!(
        site.poll().await.outcome,
        Outcome::Published,
        "two of eight are gone"
    );
}
