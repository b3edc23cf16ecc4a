use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::text::chain;
use model::{CatalogName, EmptyLayers, Key, Outcome, RejectedRevision, Status, ValidationCounts};
use store::{Condition, ReadError, Store, StoreError, StoreExt};

use crate::Env;

/// Time after which `status.json` is written although only its times have changed. 300 catalogs that are polled every ten
/// minutes cost 7,200 writes a day then, instead of 43,000; readers still see that polls go on.
const RENEW_AFTER: Duration = Duration::from_secs(3600);

/// Number of failures up to which each is written. The backoff of the poller function grows until then: 15 s doubled 16 times
/// is longer than any interval.
const FAILURES_EXACT: u64 = 16;

/// Number of attempts to write `status.json` beside other writers.
const WRITE_ATTEMPTS: u32 = 8;

/// Result of a poll, sync or import, for `status.json`.
#[derive(Debug, Clone)]
pub struct StatusUpdate {
    /// Source as it is configured, without secrets.
    pub source: String,
    /// Outcome of the poll, sync or import.
    pub outcome: Outcome,
    /// Error and its causes on one line, without secrets.
    pub error: Option<String>,
    /// Duration of the poll, sync or import.
    pub duration: Duration,
    /// True if the duration is an estimate for the next pull: an image was pulled, or the time for it was not enough.
    pub pulled: bool,
    /// Bytes received from the source over the network.
    pub bytes_pulled: u64,
    /// Bytes of immutable objects written to the store.
    pub bytes_published: u64,
    /// Layers that are known to hold no FBC, if this poll pulled an image.
    pub empty_layers: Option<EmptyLayers>,
    /// Time of the last success that this process knows of. `status.json` may have an earlier one.
    pub last_success: Option<SystemTime>,
    /// Revision of the source, if it was resolved.
    pub revision: Option<String>,
    /// Identifier under which this poll recorded its pull.
    pub pull: Option<String>,
    /// Revision that this poll pulled and cannot publish.
    pub rejected: Option<RejectedRevision>,
    /// Findings of the content that was published. `None` after a publication: it was not validated.
    pub validation: Option<ValidationCounts>,
}

/// Reads `status.json`. It only saves work, so an unreadable one counts as absent.
pub(crate) async fn read_status(store: &dyn Store, catalog: &CatalogName) -> Option<Status> {
    let before = store.read_document(&Key::Status(catalog.clone())).await.ok().flatten();
    before.map(|(before, _)| before)
}

/// Writes `status.json` after a poll, sync or import, unless only times would change within the hour. Values that this one
/// does not know are kept. `before` is a copy that was read earlier. Nothing depends on the document, so a failure is only
/// logged; it returns false then.
pub async fn record_status(
    store: &dyn Store,
    catalog: &CatalogName,
    update: StatusUpdate,
    env: &Env,
    before: Option<&Status>,
) -> bool {
    let now = (env.clock)();
    // A copy from before a pull does not show the record of that pull, which must be removed in any case.
    let is_known = |before: &&Status| update.pull.is_none() && !is_due(before, &next(&update, Some(before), now), now);
    if before.filter(is_known).is_some() {
        return true;
    }
    let written = update_status(store, catalog, |before| {
        let next = next(&update, before, now);
        before.is_none_or(|before| is_due(before, &next, now)).then_some(next)
    });
    let written = written.await;
    if let Err(error) = &written {
        tracing::warn!(%catalog, error = chain(error), "cannot write the status");
    }
    written.is_ok()
}

/// Replaces `status.json` by what `change` returns, if that is a document. Another writer's change is not lost: `change` is
/// called again with it.
pub(crate) async fn update_status(
    store: &dyn Store,
    catalog: &CatalogName,
    change: impl Fn(Option<&Status>) -> Option<Status> + Send + Sync,
) -> Result<(), StoreError> {
    let key = Key::Status(catalog.clone());
    for _ in 0..WRITE_ATTEMPTS {
        let (before, condition) = match store.read_document::<Status>(&key).await {
            Ok(Some((before, version))) => (Some(before), Condition::Replace(version)),
            Ok(None) => (None, Condition::CreateOnly),
            Err(ReadError::Store(error)) => return Err(error),
            // A damaged one is of no use to any writer.
            Err(ReadError::TooLarge { .. } | ReadError::Document { .. }) => (None, Condition::Always),
        };
        let Some(next) = change(before.as_ref()) else {
            return Ok(());
        };
        match store.write_document(&key, &next, condition).await {
            Err(error) if error.is_conflict() => {}
            written => return written.map(drop),
        }
    }
    Err(StoreError::conflict(&key))
}

/// Returns true if `next` has to be written over `before`.
fn is_due(before: &Status, next: &Status, now: SystemTime) -> bool {
    // A time in the future was written by a wrong clock.
    let is_fresh = now.duration_since(before.last_poll).is_ok_and(|age| age < RENEW_AFTER);
    !is_fresh || without_times(before) != without_times(next)
}

fn without_times(status: &Status) -> Status {
    Status {
        last_poll: UNIX_EPOCH,
        last_success: None,
        duration_ms: 0,
        pull_ms: None,
        failures: status.failures.min(FAILURES_EXACT),
        ..status.clone()
    }
}

fn next(update: &StatusUpdate, before: Option<&Status>, now: SystemTime) -> Status {
    let failures = before.map_or(0, |before| before.failures);
    let last_success = before.and_then(|before| before.last_success).max(update.last_success);
    let is_success = update.outcome.is_success();
    let (last_success, failures) = match is_success {
        true => (Some(now), 0),
        false => (last_success, failures.saturating_add(1)),
    };
    let duration_ms = update.duration.as_millis().try_into().unwrap_or(u64::MAX);
    let known_pull = before.and_then(|before| before.pull_ms);
    let is_published = |revision: &str| is_success && update.revision.as_deref() == Some(revision);
    let open_pulls = before.and_then(|before| before.open_pulls.clone());
    // An ordinary error removes only the record of this pull: a registry that fails between two deaths proves nothing.
    let open_pulls = open_pulls.filter(|open| !is_published(&open.inputs.revision));
    let rejected = before.and_then(|before| before.rejected.clone());
    let rejected = rejected.filter(|rejected| !is_published(&rejected.inputs.revision));
    let next = Status {
        source: update.source.clone(),
        last_poll: now,
        outcome: update.outcome,
        last_success,
        error: update.error.clone(),
        failures,
        duration_ms,
        pull_ms: update.pulled.then_some(duration_ms).or(known_pull),
        bytes_pulled: update.bytes_pulled,
        bytes_published: update.bytes_published,
        empty_layers: update
            .empty_layers
            .clone()
            .or_else(|| before.and_then(|before| before.empty_layers.clone())),
        open_pulls,
        rejected: update.rejected.clone().or(rejected),
        validation: match update.outcome {
            Outcome::Published => update.validation,
            _ => update
                .validation
                .or_else(|| before.and_then(|before| before.validation)),
        },
    };
    match &update.pull {
        Some(pull) => without_pull(next, pull),
        None => next,
    }
}

/// Removes the record of one pull.
pub(crate) fn without_pull(mut status: Status, pull: &str) -> Status {
    if let Some(open) = &mut status.open_pulls {
        open.pulls.remove(pull);
    }
    status.open_pulls = status.open_pulls.filter(|open| !open.pulls.is_empty());
    status
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn update(outcome: Outcome, is_pull: bool) -> StatusUpdate {
        StatusUpdate {
            source: "dir:/x".into(),
            outcome,
            error: None,
            duration: Duration::from_millis(7),
            pulled: is_pull,
            bytes_pulled: 1,
            bytes_published: 2,
            empty_layers: None,
            last_success: None,
            revision: None,
            pull: None,
            rejected: None,
            validation: None,
        }
    }

    #[test]
    fn validation_stays_until_something_is_published() {
        let counts = Some(ValidationCounts {
            errors: 1,
            ..ValidationCounts::default()
        });
        let validated = StatusUpdate {
            validation: counts,
            ..update(Outcome::Published, true)
        };
        let first = next(&validated, None, UNIX_EPOCH);
        for (outcome, expected) in [
            (Outcome::Unchanged, counts),
            (Outcome::Refused, counts),
            (Outcome::Published, None),
        ] {
            assert_eq!(
                next(&update(outcome, false), Some(&first), UNIX_EPOCH).validation,
                expected
            );
        }
    }

    #[test]
    fn status_is_due_if_more_than_times_changed_or_after_an_hour() {
        let first = next(&update(Outcome::Unchanged, false), None, UNIX_EPOCH);
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let later = |seconds, outcome| {
            let update = StatusUpdate {
                duration: Duration::from_secs(9),
                ..update(outcome, false)
            };
            let next = next(&update, Some(&first), at(seconds));
            is_due(&first, &next, at(seconds))
        };
        assert!(!later(3599, Outcome::Unchanged) && later(3600, Outcome::Unchanged));
        assert!(later(1, Outcome::Failed));
        let ahead = Status {
            last_poll: at(99),
            ..first.clone()
        };
        assert!(is_due(&ahead, &first, at(1)), "a clock was wrong");
        let failed = |failures| Status {
            failures,
            ..first.clone()
        };
        assert!(is_due(&failed(15), &failed(16), at(1)) && !is_due(&failed(16), &failed(17), at(1)));
    }

    #[test]
    fn failure_keeps_the_last_success_that_was_not_written() {
        let first = next(&update(Outcome::Unchanged, false), None, UNIX_EPOCH);
        let known = UNIX_EPOCH + Duration::from_secs(600);
        let failed = StatusUpdate {
            last_success: Some(known),
            ..update(Outcome::Failed, false)
        };
        let failed = next(&failed, Some(&first), known + Duration::from_secs(600));
        assert_eq!(failed.last_success, Some(known));
    }

    #[test]
    fn failure_counts_and_keeps_what_was_known() {
        let first = next(&update(Outcome::Published, true), None, UNIX_EPOCH);
        let layers = EmptyLayers {
            root: "/configs".into(),
            empty: ["sha256:00".to_owned()].into(),
        };
        let first = Status {
            empty_layers: Some(layers.clone()),
            ..first
        };
        let later = UNIX_EPOCH + Duration::from_secs(60);
        let failed = StatusUpdate {
            duration: Duration::from_millis(1),
            ..update(Outcome::Failed, false)
        };
        let second = next(&failed, Some(&first), later);
        assert_eq!((second.failures, second.last_success), (1, Some(UNIX_EPOCH)));
        assert_eq!((second.pull_ms, second.empty_layers.clone()), (Some(7), Some(layers)));
        assert_eq!(next(&failed, Some(&second), later).failures, 2);
    }
}
