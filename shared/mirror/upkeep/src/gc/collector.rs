use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{
    Garbage, GcPhase, GcState, Key, Kind, ObjectDigest, ObjectKey, ObjectRef, StoredDocument,
};
use publish::DatedGcState;
use store::{Stat, Store, StoreExt, put_object, read_usable};

use super::error::GcError;
use super::marks::Marks;
use super::options::GcOptions;
use super::report::{GcReport, GcStep};

/// Time for which deletes may be sent after `deleting` began. With 15 minutes for which a signature
/// of S3 lives, and 15 for a clock that is wrong, every delete has landed well before the state
/// ends.
const DELETING_MAX: Duration = Duration::from_secs(30 * 60);

/// Number of times that a step starts again because a publication spared something meanwhile.
const STEP_ATTEMPTS: u32 = 3;

/// Maximum number of deletes between two looks at the clock. All are sent within seconds.
const DELETE_BATCH_MAX: usize = 1_000;

/// Number of deletes of one batch that are under way at a time. With 20 ms each, 1,000 of them take
/// about a second. DeleteObjects of S3 is not used: several S3-compatible servers lack it, and AWS
/// charges nothing for single deletes.
const DELETES_IN_FLIGHT: usize = 32;

/// One run of garbage collection over one store.
pub(super) struct Collector<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) options: &'a GcOptions,
}

impl Collector<'_> {
    pub(super) async fn run(&self) -> Result<GcReport, GcError> {
        for _ in 0..STEP_ATTEMPTS {
            if let Some(report) = self.step().await? {
                return Ok(report);
            }
        }
        // A run that lost all its races is not an error: what it wanted to do was done by others,
        // or waits for the next run.
        let state = self.read().await?;
        Ok(GcReport::default().at(&state, GcStep::LostRace))
    }

    /// Takes all steps of a round, again and again until nothing is left to condemn.
    pub(super) async fn run_offline(&self) -> Result<GcReport, GcError> {
        let mut total = GcReport::default();
        loop {
            let mut report = self.run().await?;
            let is_last = matches!(report.step, GcStep::Clean | GcStep::LostRace | GcStep::Wait);
            if is_last && total.deleted.objects > 0 {
                report.step = GcStep::Delete;
            }
            report.condemned += total.condemned;
            report.deleted += total.deleted;
            report.failed += total.failed;
            // The last mark counts what is kept; the end of a round marks nothing.
            if report.snapshots == 0 {
                report.catalogs = total.catalogs;
                report.snapshots = total.snapshots;
                report.kept = total.kept;
                report.unreadable = total.unreadable;
            }
            total = report;
            // What cannot be deleted now would be condemned for ever.
            if is_last || total.failed > 0 && total.step == GcStep::Finish {
                return Ok(total);
            }
        }
    }

    /// Takes the step that is due. Returns `None` if it lost a race.
    async fn step(&self) -> Result<Option<GcReport>, GcError> {
        let state = self.read().await?;
        if self.options.dry_run {
            let mut report = GcReport::default();
            let unmarked = self.unmarked(&state, &mut report).await?;
            report.dry_run = true;
            unmarked
                .values()
                .for_each(|size| report.condemned.add(*size));
            return Ok(Some(report.at(&state, GcStep::Wait)));
        }
        let is_due = self.options.offline || state.age() >= GcState::AGE_MIN;
        match &state.state.phase {
            GcPhase::None if is_due => self.condemn(&state).await,
            GcPhase::Condemned { garbage, spared } if is_due => {
                self.start_deleting(&state, garbage, spared).await
            }
            // Any collector may delete during these 30 minutes, also one that did not start the
            // phase: the first may have died.
            GcPhase::Deleting { garbage }
                if state.age() < DELETING_MAX && !self.options.offline =>
            {
                let keys = read_usable(self.store, &garbage.digest)
                    .await?
                    .unwrap_or_default();
                self.delete(&state, keys, GcReport::default())
                    .await
                    .map(Some)
            }
            GcPhase::Deleting { .. } if is_due => self.finish(&state).await,
            GcPhase::None | GcPhase::Condemned { .. } | GcPhase::Deleting { .. } => {
                Ok(Some(GcReport::default().at(&state, GcStep::Wait)))
            }
        }
    }

    async fn read(&self) -> Result<DatedGcState, GcError> {
        if !self.options.dry_run {
            return Ok(DatedGcState::read(self.store).await?);
        }
        // The time of a folder comes from a fresh file. A dry run must also work where this process
        // may only read, so it takes the time from the own clock.
        let found = self.store.read_document::<GcState>(&Key::Gc).await?;
        let object = self.store.head(&Key::Gc).await?;
        let date = (self.options.env.clock)();
        let stat = Stat { date, object };
        Ok(DatedGcState::new(found.map(|(state, _)| state), stat))
    }

    /// Marks, and returns the sizes of all immutable objects that nothing names.
    async fn unmarked(
        &self,
        state: &DatedGcState,
        report: &mut GcReport,
    ) -> Result<BTreeMap<ObjectKey, u64>, GcError> {
        // The order of listing and marking does not matter: what is published meanwhile is marked
        // again before any delete.
        let mut objects = self.list().await?;
        let mut marks = Marks::read(self.store, &self.options.retention, state.date).await?;
        // The list of this round is needed until the round ends, and no Snapshot names it.
        marks
            .keys
            .extend(state.state.garbage().copied().map(ObjectKey::from));
        report.catalogs = marks.catalogs;
        report.snapshots = marks.snapshots;
        report.unreadable = marks.unreadable;
        let marked = objects.extract_if(.., |key, _| marks.keys.contains(key));
        marked.for_each(|(_, size)| report.kept.add(size));
        Ok(objects)
    }

    async fn list(&self) -> Result<BTreeMap<ObjectKey, u64>, GcError> {
        let listed = self.store.list("");
        let objects = listed.try_filter_map(async |object| {
            Ok(ObjectKey::of(&object.key).map(|key| (key, object.size)))
        });
        Ok(objects.try_collect().await?)
    }

    async fn condemn(&self, state: &DatedGcState) -> Result<Option<GcReport>, GcError> {
        let age_min = if self.options.offline {
            Duration::ZERO
        } else {
            GcState::AGE_MIN
        };
        publish::drop_stale_names(self.store, age_min).await?;
        let mut report = GcReport::default();
        let unmarked = self.unmarked(state, &mut report).await?;
        // Lists of earlier rounds go with other garbage. Alone they would start round after round,
        // for each leaves one.
        if unmarked.keys().all(|key| key.kind == Kind::Garbage) {
            return Ok(Some(report.at(state, GcStep::Clean)));
        }
        // Snapshots first: if the list is full, no Snapshot is left that names what is gone.
        let (snapshots, others): (Vec<_>, Vec<_>) = unmarked
            .into_iter()
            .partition(|(key, _)| key.kind == Kind::Snapshot);
        let chosen: BTreeMap<ObjectKey, u64> = snapshots
            .into_iter()
            .chain(others)
            .take(Garbage::MAX_KEYS)
            .collect();
        chosen.values().for_each(|size| report.condemned.add(*size));
        report.left = report.condemned;
        let keys = chosen.into_keys().collect();
        let garbage = self.put_list(&Garbage { keys }).await?;
        let spared = BTreeSet::new();
        let phase = GcPhase::Condemned { garbage, spared };
        let replaced = state
            .replace(self.store, state.state.with_phase(phase))
            .await?;
        Ok(replaced.map(|after| report.at(&after, GcStep::Condemn)))
    }

    async fn finish(&self, state: &DatedGcState) -> Result<Option<GcReport>, GcError> {
        let replaced = state
            .replace(self.store, state.state.with_phase(GcPhase::None))
            .await?;
        Ok(replaced.map(|after| GcReport::default().at(&after, GcStep::Finish)))
    }

    /// Marks again, after the state was read: a publication that spares something meanwhile makes
    /// the compare-and-swap fail, and one that committed is marked.
    async fn start_deleting(
        &self,
        state: &DatedGcState,
        garbage: &ObjectRef,
        spared: &BTreeSet<ObjectKey>,
    ) -> Result<Option<GcReport>, GcError> {
        let Some(mut list) = read_usable::<Garbage>(self.store, &garbage.digest).await? else {
            // Without its list nothing can be deleted: the round ends.
            return self.finish(state).await;
        };
        let mut report = GcReport::default();
        let unmarked = self.unmarked(state, &mut report).await?;
        list.keys
            .retain(|key| !spared.contains(key) && unmarked.contains_key(key));
        if list.keys.is_empty() {
            return self.finish(state).await;
        }
        let garbage = self.put_list(&list).await?;
        let next = state.state.with_phase(GcPhase::Deleting { garbage });
        if state.replace(self.store, next).await?.is_none() {
            return Ok(None);
        }
        // Read back, because only a read tells the age by the clock of the store. It also shows if
        // another collector came first.
        let deleting = self.read().await?;
        if deleting.state.garbage() != Some(&garbage) {
            return Ok(None);
        }
        self.delete(&deleting, list, report).await.map(Some)
    }

    /// Deletes what is left of a list, as long as the state is young enough.
    async fn delete(
        &self,
        state: &DatedGcState,
        list: Garbage,
        marked: GcReport,
    ) -> Result<GcReport, GcError> {
        let started = Instant::now();
        let own_start = (self.options.env.since_boot)();
        let mut report = marked.at(state, GcStep::Delete);
        let mut left = self.list().await?;
        // What is gone already is skipped: an earlier run or another collector has deleted it.
        left.retain(|key, _| list.keys.contains(key));
        left.values().for_each(|size| report.left.add(*size));
        let (snapshots, others): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|(key, _)| key.kind == Kind::Snapshot);
        for objects in [snapshots, others] {
            // A Snapshot that could not be deleted still names the other objects, so these stay
            // until it is gone.
            if report.failed > 0 {
                break;
            }
            for batch in objects.chunks(DELETE_BATCH_MAX) {
                let is_out_of_time = self
                    .options
                    .time
                    .is_some_and(|time| started.elapsed() >= time);
                if is_out_of_time || !self.may_delete(state, own_start).await? {
                    return Ok(report);
                }
                self.delete_batch(batch, &mut report).await;
            }
        }
        Ok(report)
    }

    /// Returns true if `gc.json` is unchanged and young enough to delete one more batch.
    async fn may_delete(&self, state: &DatedGcState, own_start: Duration) -> Result<bool, GcError> {
        let stat = self.store.stat(&Key::Gc).await?;
        // Another version means another state, in which the list may not be deleted any more.
        let found = stat.object.map(|object| object.version);
        let is_same = found.is_some() && found == state.version;
        // The larger age counts: a process that was suspended and a clock that stands still must
        // not delete too late. Checked before each batch, because the process may be suspended
        // between two of them.
        let by_store = state.age() + stat.date.duration_since(state.date).unwrap_or_default();
        let by_own_clock = state.age() + (self.options.env.since_boot)().saturating_sub(own_start);
        let is_young = by_store.max(by_own_clock) < DELETING_MAX;
        Ok(is_same && (is_young || self.options.offline))
    }

    async fn delete_batch(&self, batch: &[(ObjectKey, u64)], report: &mut GcReport) {
        let deletes = batch.iter().map(|(key, size)| async move {
            let key = key.key();
            let deleted = self.store.delete(&key).await;
            (key, *size, deleted)
        });
        let deletes: Vec<_> = deletes.collect();
        let mut deletes = stream::iter(deletes).buffered(DELETES_IN_FLIGHT);
        while let Some((key, size, deleted)) = deletes.next().await {
            match deleted {
                Ok(()) => {
                    report.deleted.add(size);
                    report.left.objects -= 1;
                    report.left.bytes -= size;
                }
                Err(error) => {
                    report.failed += 1;
                    // No retry: a delete that is sent late could land when the key has been written
                    // again. The next round condemns the key once more.
                    tracing::warn!(%key, error = %model::text::Chain(&error), "cannot delete an object");
                }
            }
        }
    }

    async fn put_list(&self, list: &Garbage) -> Result<ObjectRef, GcError> {
        let bytes = list.to_stored().map_err(GcError::Compress)?;
        let object = ObjectDigest::of(&bytes).with_kind(Kind::Garbage);
        put_object(self.store, &object, bytes.into()).await?;
        self.store.flush().await?;
        Ok(object)
    }
}
