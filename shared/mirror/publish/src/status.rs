use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::text::Chain;
use model::{CatalogName, Document, Key, Status};
use store::{ReadError, Store, StoreError, StoreExt};

/// Time after which `status.json` is written although only its times have changed. 300 catalogs
/// that are polled every ten minutes cost 7,200 writes a day then, instead of 43,000; readers still
/// see that polls go on.
const RENEW_AFTER: Duration = Duration::from_secs(3600);

/// Number of failures up to which each is written. The backoff of the poller function grows until
/// then: 15 s doubled 16 times is longer than any interval.
const FAILURES_EXACT: u64 = 16;

/// Number of attempts to write `status.json` beside other writers.
const WRITE_ATTEMPTS: u32 = 8;

/// Reads `status.json`. It only saves work, so an unreadable one counts as absent.
pub(crate) async fn read_status(store: &dyn Store, catalog: &CatalogName) -> Option<Status> {
    let before = store
        .read_document(&Key::Status(catalog.clone()))
        .await
        .ok()
        .flatten();
    before.map(|(before, _)| before)
}

/// Writes `status.json` after a poll, sync or import that ended `now`, unless only times would
/// change within the hour. `next` returns the document that follows the one that is stored;
/// `before` is a copy that was read earlier. Nothing depends on the document, so a failure is only
/// logged; it returns false then.
pub async fn record_status(
    store: &dyn Store,
    catalog: &CatalogName,
    now: SystemTime,
    before: Option<&Status>,
    next: impl Fn(Option<&Status>) -> Status + Send + Sync,
) -> bool {
    if before.is_some_and(|before| !is_due(before, &next(Some(before)), now)) {
        return true;
    }
    let written = update_status(store, catalog, |before| {
        let next = next(before);
        before
            .is_none_or(|before| is_due(before, &next, now))
            .then_some(next)
    });
    let written = written.await;
    if let Err(error) = &written {
        tracing::warn!(%catalog, error = %Chain(error), "cannot write the status");
    }
    written.is_ok()
}

/// Replaces `status.json` by what `change` returns, if that is a document. Another writer's change
/// is not lost: `change` is called again with it.
pub(crate) async fn update_status(
    store: &dyn Store,
    catalog: &CatalogName,
    mut change: impl FnMut(Option<&Status>) -> Option<Status> + Send,
) -> Result<(), StoreError> {
    let key = Key::Status(catalog.clone());
    let mut written = None;
    for _ in 0..WRITE_ATTEMPTS {
        let (before, version) = match store.read_document::<Status>(&key).await {
            Ok(found) => found.unzip(),
            Err(ReadError::Store(error)) => return Err(error),
            // A damaged one is of no use to any writer.
            Err(_) => (None, store.head(&key).await?.map(|info| info.version)),
        };
        // Compared as bytes, because a document has its times in whole seconds.
        let stored = before.as_ref().map(Status::to_bytes);
        if stored.is_some() && stored == written {
            // The write has taken effect, and its answer was lost. A second one would count twice.
            return Ok(());
        }
        let Some(next) = change(before.as_ref()) else {
            return Ok(());
        };
        if store.swap_document(&key, &next, version).await?.is_some() {
            return Ok(());
        }
        written = Some(next.to_bytes());
    }
    Err(StoreError::conflict(&key))
}

/// Returns true if `next` has to be written over `before`.
fn is_due(before: &Status, next: &Status, now: SystemTime) -> bool {
    // A time in the future was written by a wrong clock.
    let is_fresh = now
        .duration_since(before.last_poll)
        .is_ok_and(|age| age < RENEW_AFTER);
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

#[cfg(test)]
mod tests {
    use model::{EmptyLayers, Outcome, ValidationCounts};
    use store::Condition;
    use storekit::{Action, Answer, MemoryStore, Moment};

    use super::*;

    fn ended(outcome: Outcome, now: SystemTime) -> Status {
        Status::new("dir:/x".into(), outcome, now)
    }

    #[test]
    fn validation_stays_until_something_is_published() {
        let counts = Some(ValidationCounts::default());
        let mut first = ended(Outcome::Published, UNIX_EPOCH);
        first.validation = counts;
        for (outcome, expected) in [
            (Outcome::Unchanged, counts),
            (Outcome::Refused, counts),
            (Outcome::Published, None),
        ] {
            let next = ended(outcome, UNIX_EPOCH).after(Some(&first));
            assert_eq!(next.validation, expected);
        }
    }

    #[test]
    fn status_is_due_if_more_than_times_changed_or_after_an_hour() {
        let first = ended(Outcome::Unchanged, UNIX_EPOCH).after(None);
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let later = |seconds, outcome| {
            let mut next = ended(outcome, at(seconds)).after(Some(&first));
            next.duration_ms = 9;
            is_due(&first, &next, at(seconds))
        };
        assert!(!later(3599, Outcome::Unchanged) && later(3600, Outcome::Unchanged));
        assert!(later(1, Outcome::Failed));
        let ahead = ended(Outcome::Unchanged, at(99)).after(None);
        assert!(is_due(&ahead, &first, at(1)), "a clock was wrong");
        let failed = |failures| Status {
            failures,
            ..first.clone()
        };
        assert!(
            is_due(&failed(15), &failed(16), at(1)) && !is_due(&failed(16), &failed(17), at(1))
        );
    }

    #[test]
    fn failure_counts_and_keeps_what_was_known() {
        let layers = EmptyLayers {
            root: "/configs".into(),
            empty: ["sha256:00".to_owned()].into(),
        };
        let mut first = ended(Outcome::Published, UNIX_EPOCH);
        first.pull_ms = Some(7);
        first.empty_layers = Some(layers);
        let failed = ended(Outcome::Failed, UNIX_EPOCH + Duration::from_secs(1200));
        let second = failed.clone().after(Some(&first));
        let expected = Status {
            failures: 1,
            last_success: Some(UNIX_EPOCH),
            pull_ms: first.pull_ms,
            empty_layers: first.empty_layers,
            ..failed.clone()
        };
        assert_eq!(second, expected);
        assert_eq!(failed.clone().after(Some(&second)).failures, 2);
        // A later success that was not written.
        let last_success = Some(UNIX_EPOCH + Duration::from_secs(600));
        let failed = Status {
            last_success,
            ..failed
        };
        assert_eq!(failed.after(Some(&second)).last_success, last_success);
    }

    #[tokio::test]
    async fn update_whose_answer_was_lost_is_not_made_twice() {
        let (store, catalog) = (MemoryStore::new(), "a".parse().unwrap());
        store.set_hook(|call, moment| match (&call.action, moment) {
            (Action::Put(_), Moment::After) => Answer::Conflict,
            _ => Answer::GoOn,
        });
        // No clock stands at a whole second.
        let failed = ended(Outcome::Failed, UNIX_EPOCH + Duration::from_millis(1500));
        let next = |before: Option<&Status>| Some(failed.clone().after(before));
        update_status(&store, &catalog, next).await.unwrap();
        assert_eq!(read_status(&store, &catalog).await.unwrap().failures, 1);
    }

    #[tokio::test]
    async fn damaged_status_is_replaced_unless_another_writer_replaces_it_first() {
        let (store, catalog) = (MemoryStore::new(), "a".parse().unwrap());
        let key = Key::Status(CatalogName::clone(&catalog));
        let version = store
            .put(&key, "{".into(), Condition::CreateOnly)
            .await
            .unwrap();
        store.take_log();
        let failed = ended(Outcome::Failed, UNIX_EPOCH);
        let next = |before: Option<&Status>| Some(failed.clone().after(before));
        update_status(&store, &catalog, next).await.unwrap();
        assert_eq!(read_status(&store, &catalog).await.unwrap().failures, 1);
        let replaces = Action::Put(Condition::Replace(version));
        assert_eq!(store.count(|action| *action == replaces), 1);
    }
}
