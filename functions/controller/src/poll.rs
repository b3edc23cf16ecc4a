//! One poll of one ClusterCatalog.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::runtime::reflector;
use model::text::chain;
use publish::{Catalog, PollError, PollOptions, Report};
use source::ImageError;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    catalog::{CatalogStatus, ClusterCatalog},
    conditions::{BLOCKED, Fact, PROGRESSING},
    reconcile::Reconciler,
    registries_conf::{self, ConfError},
    schedule::{self, LastPoll},
    spec,
};

/// Time between two looks at an object while it is polled.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Result of a poll.
pub(crate) struct Polled {
    pub(crate) fact: Fact,
    pub(crate) interval: Option<Duration>,
}

impl Reconciler {
    /// Polls. Returns `None` if the object was changed or deleted meanwhile: its content is then decided anew.
    pub(crate) async fn poll(&self, object: &ClusterCatalog) -> Option<Polled> {
        let catalog = match spec::catalog(object) {
            Ok(catalog) => catalog,
            Err(error) => return Some(Polled::failed(error.message, error.is_terminal)),
        };
        if let Err(error) = self.prepare_pull().await {
            return Some(Polled::failed(
                format!("source catalog content: {}", chain(&error)),
                false,
            ));
        }
        let mirror = Arc::clone(&self.mirror);
        let polled = catalog.clone();
        // A task of its own: a panic must not end the work on other catalogs.
        let polling = tokio::spawn(async move {
            let options = PollOptions {
                // The owner of the ClusterCatalog decides what it holds, and a cluster has no way to force a poll.
                accept_gone: true,
                ..PollOptions::default()
            };
            mirror.poll(&polled, options).await
        });
        let report = tokio::select! {
            report = AbortOnDropHandle::new(polling) => report,
            () = self.until_changed(object) => return None,
        };
        Some(match report {
            Ok(report) => Polled {
                fact: fact(object, &catalog, &report),
                interval: catalog.poll_interval(),
            },
            Err(error) => Polled::failed(format!("the poll was broken off: {error}"), false),
        })
    }

    /// Reads again what decides how images are pulled: logins, and rules for registries.
    pub(crate) async fn prepare_pull(&self) -> Result<(), ConfError> {
        self.secrets.refresh().await;
        self.rules.set(registries_conf::read()?);
        Ok(())
    }

    /// Returns when the object has another generation than this one, or is gone.
    pub(crate) async fn until_changed(&self, object: &ClusterCatalog) {
        let reference = reflector::ObjectRef::from_obj(object);
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let found = self.objects.get(&reference);
            // An older one: the list of objects may be behind.
            let is_same = |found: &ClusterCatalog| {
                let (found, object) = (found.version(), object.version());
                found == object || (found.uid == object.uid && found.generation < object.generation)
            };
            if !found.is_some_and(|found| is_same(&found)) {
                return;
            }
        }
    }
}

impl Polled {
    /// Returns a failure that the schedule treats as the status names it.
    pub(crate) const fn failed(message: String, is_terminal: bool) -> Self {
        Self {
            fact: Fact::Failed { message, is_terminal },
            interval: None,
        }
    }
}

/// Returns the record of a poll that has just ended.
pub(crate) fn next_poll(object: &ClusterCatalog, before: Option<&LastPoll>, polled: Polled) -> LastPoll {
    let before = before.filter(|before| before.version == object.version());
    let failures = before.map_or(0, |before| before.failures);
    let (failures, wait) = match &polled.fact {
        Fact::Failed { is_terminal: true, .. } => (failures.saturating_add(1), None),
        Fact::Failed { .. } => {
            let failures = failures.saturating_add(1);
            (
                failures,
                Some(publish::jittered(publish::backoff(failures, polled.interval))),
            )
        }
        _ => (0, schedule::wait_after_success(polled.interval, rand::random())),
    };
    LastPoll {
        version: object.version(),
        fact: polled.fact,
        failures,
        next: wait.map(|wait| Instant::now() + wait),
    }
}

/// Returns what a poll means for the status.
fn fact(object: &ClusterCatalog, catalog: &Catalog, report: &Report) -> Fact {
    let source = catalog.source.pulled();
    match (&report.error, &report.digest, source) {
        (None, Some(digest), Some(source)) => {
            let reference = spec::canonical(source, digest);
            Fact::Stored {
                unpacked: unpacked(&object.status, &reference),
                reference,
            }
        }
        (error, ..) => {
            let is_pinned = catalog.source.pinned().is_some();
            let error = error.as_ref();
            let text = match error {
                // The text of the first failure, so that the status does not change with the second.
                Some(PollError::KnownRevision { error, .. }) => Some(error.clone()),
                _ => report.error_text(),
            };
            Fact::Failed {
                message: format!("source catalog content: {}", text.unwrap_or_default()),
                is_terminal: is_pinned && error.is_some_and(|error| lacks_label(object, error)),
            }
        }
    }
}

/// Returns the time at which an image was published here: it stays while the status names the same image.
pub(crate) fn unpacked(before: &CatalogStatus, reference: &str) -> Time {
    match &before.last_unpacked {
        Some(known) if before.resolved() == Some(reference) => known.clone(),
        _ => whole_seconds(),
    }
}

/// Returns true if a pinned image is no catalog, which no later poll can change. It is the only such error that catalogd takes for
/// final.
fn lacks_label(object: &ClusterCatalog, error: &PollError) -> bool {
    match error {
        PollError::Image(source::Error::Image(ImageError::NoLabel)) => true,
        // The store remembers the failure and not its kind. The status has it.
        PollError::KnownRevision { .. } => object.status.condition(PROGRESSING).is_some_and(|condition| {
            condition.reason == BLOCKED && condition.observed_generation == Some(object.generation())
        }),
        _ => false,
    }
}

/// Returns the time of day, as the API has it.
pub(crate) fn whole_seconds() -> Time {
    let now = Timestamp::now();
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}
