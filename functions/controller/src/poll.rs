//! One poll of one ClusterCatalog.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::runtime::reflector::{self, ObjectRef};
use model::RejectionKind;
use publish::{Catalog, LastPoll, Mirror, PollError, PollOptions, Report, due};
use source::{RegistriesConf, RegistryRules};
use tokio_util::task::AbortOnDropHandle;

use crate::catalog::{CatalogStatus, ClusterCatalog};
use crate::conditions::Fact;
use crate::schedule::LastWork;
use crate::secrets::ClusterSecrets;
use crate::spec;

/// Time between two looks at an object while it is polled.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The mirror, with the logins and the rules for registries of this cluster.
pub(crate) struct Puller {
    pub(crate) mirror: Arc<Mirror>,
    pub(crate) secrets: ClusterSecrets,
    /// Rules for registries, read again before each poll.
    pub(crate) rules: RegistryRules,
}

impl Puller {
    /// Polls a catalog, and publishes what is new.
    pub(crate) async fn poll(&self, catalog: &Catalog) -> anyhow::Result<Report> {
        self.secrets.refresh().await;
        let rules = RegistriesConf::of_host(None).read();
        self.rules.set(rules.context("source catalog content")?);
        let options = PollOptions {
            // The owner of the ClusterCatalog decides what it holds, and a cluster has no way to
            // force a poll.
            accept_gone: true,
            ..PollOptions::default()
        };
        let mirror = Arc::clone(&self.mirror);
        let catalog = catalog.clone();
        // A task of its own: a panic must not end the work on other catalogs.
        let polling = tokio::spawn(async move { mirror.poll(&catalog, options).await });
        AbortOnDropHandle::new(polling)
            .await
            .context("the poll was broken off")
    }
}

/// Polls the catalog of an object. Returns the result, and the time between two polls.
pub(crate) async fn poll(object: &ClusterCatalog, puller: &Puller) -> (Fact, Option<Duration>) {
    let catalog = match spec::catalog(object) {
        Ok(catalog) => catalog,
        Err(failed) => return (failed, None),
    };
    match puller.poll(&catalog).await {
        Ok(report) => (fact(object, &catalog, &report), catalog.poll_interval()),
        Err(error) => {
            let message = model::text::chain(error.as_ref());
            let is_terminal = false;
            (
                Fact::Failed {
                    message,
                    is_terminal,
                },
                None,
            )
        }
    }
}

/// Returns when the object has another generation than this one, or is gone.
pub(crate) async fn until_changed(
    object: &ClusterCatalog,
    objects: &reflector::Store<ClusterCatalog>,
) {
    let reference = ObjectRef::from_obj(object);
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let found = objects.get(&reference);
        let Some(found) = found.map(|found| found.version()) else {
            return;
        };
        let polled = object.version();
        // The list of objects may be behind.
        let is_older = found.uid == polled.uid && found.generation < polled.generation;
        if found != polled && !is_older {
            return;
        }
    }
}

/// Returns the record of a poll that has just ended.
pub(crate) fn next_poll(
    object: &ClusterCatalog,
    before: Option<&LastWork>,
    fact: Fact,
    interval: Option<Duration>,
) -> LastWork {
    let before = before.filter(|before| before.version == object.version());
    let failures = match &fact {
        Fact::Failed { .. } => before.map_or(0, |before| before.failures).saturating_add(1),
        _ => 0,
    };
    let ended = LastPoll {
        ended: SystemTime::now(),
        failures,
        // An object names an image, and no ring.
        next_at: None,
        // A poll never comes later than the object says.
        early: rand::random(),
    };
    let is_last = matches!(
        fact,
        Fact::Failed {
            is_terminal: true,
            ..
        }
    );
    let wait = due(interval, &ended, ended.ended).filter(|_| !is_last);
    LastWork {
        version: object.version(),
        named: object.status.served_digest().map(str::to_owned),
        fact,
        failures,
        next: wait.map(|wait| Instant::now() + wait),
    }
}

/// Returns what a poll means for the status.
fn fact(object: &ClusterCatalog, catalog: &Catalog, report: &Report) -> Fact {
    if let (None, Some(digest), Some(pulled)) =
        (&report.error, &report.digest, catalog.source.pulled())
    {
        let reference = spec::canonical(&pulled.source, digest);
        return Fact::Stored {
            unpacked: unpacked(&object.status, &reference),
            reference,
        };
    }
    let error = report.error.as_ref();
    let text = match error {
        // The text of the first failure, so that the status does not change with the second.
        Some(PollError::KnownRevision(known)) => Some(known.error.clone()),
        _ => report.error_text(),
    };
    Fact::Failed {
        message: format!("source catalog content: {}", text.unwrap_or_default()),
        // No later poll can change that a pinned image is no catalog. catalogd takes no other error
        // for final.
        is_terminal: catalog.source.pinned().is_some()
            && error.is_some_and(|error| error.kind() == RejectionKind::NoLabel),
    }
}

/// Returns the time at which an image was published here: it stays while the status names the same
/// image.
fn unpacked(before: &CatalogStatus, reference: &str) -> Time {
    match &before.last_unpacked {
        Some(known) if before.resolved() == Some(reference) => known.clone(),
        _ => whole_seconds(),
    }
}

/// Returns the time of day, as the API has it.
pub(crate) fn whole_seconds() -> Time {
    let now = Timestamp::now();
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}
