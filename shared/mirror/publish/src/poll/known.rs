//! Facts about catalogs that one process knows and no document has. They are lost with the process.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use model::{CatalogName, PullInputs};
use parking_lot::Mutex;
use render::{ChunkLines, RenderLimits};

/// Time between two looks at the stored objects of an unchanged catalog. Each look is one small
/// request per object: 300 catalogs of 300 packages cost a dollar a day on S3.
const CHECK_INTERVAL: Duration = Duration::from_secs(3600);

/// Catalogs as far as this process knows more of them than the store.
#[derive(Debug, Default)]
pub(super) struct KnownCatalogs(Mutex<HashMap<CatalogName, KnownCatalog>>);

/// Times of the last polls of a catalog by one process, by its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollTimes {
    /// End of the last poll.
    pub last_poll: SystemTime,
    /// End of the last poll that succeeded; `None` if none did.
    pub last_success: Option<SystemTime>,
}

#[derive(Debug, Default)]
struct KnownCatalog {
    /// Times of its last polls, which `status.json` may not have yet.
    times: Option<PollTimes>,
    /// Time since boot of the last look at its stored objects.
    checked: Option<Duration>,
    /// Pull that this process has begun and not counted off. It is no death: this process lives.
    own_pull: Option<PullInputs>,
    /// Chunks of the last image that it pulled.
    chunks: Option<KeptChunks>,
}

#[derive(Debug)]
struct KeptChunks {
    /// Limits that the chunks kept. Under others they are parsed again.
    limits: RenderLimits,
    lines: ChunkLines,
}

impl KnownCatalogs {
    /// Returns the times of the last polls; `None` before the first.
    pub(super) fn times(&self, catalog: &CatalogName) -> Option<PollTimes> {
        self.of(catalog, |known| known.times)
    }

    /// Notes a poll that has ended now, and returns the new times.
    pub(super) fn note_poll(
        &self,
        catalog: &CatalogName,
        now: SystemTime,
        is_success: bool,
    ) -> PollTimes {
        self.of(catalog, |known| {
            let before = known.times.and_then(|times| times.last_success);
            *known.times.insert(PollTimes {
                last_poll: now,
                last_success: if is_success { Some(now) } else { before },
            })
        })
    }

    /// Returns true if this process has not looked at the stored objects for an hour. `now` is the
    /// time since boot.
    pub(super) fn is_check_due(&self, catalog: &CatalogName, now: Duration) -> bool {
        let checked = self.of(catalog, |known| known.checked);
        checked.is_none_or(|last| now.saturating_sub(last) >= CHECK_INTERVAL)
    }

    /// Notes that the stored objects were all there `now`, as the time since boot.
    pub(super) fn note_check(&self, catalog: &CatalogName, now: Duration) {
        self.of(catalog, |known| known.checked = Some(now));
    }

    /// Notes that this process begins a pull, or `None` once that is counted off.
    pub(super) fn set_own_pull(&self, catalog: &CatalogName, pull: Option<PullInputs>) {
        self.of(catalog, |known| known.own_pull = pull);
    }

    /// Returns true if this process has begun a pull and not counted it off.
    pub(super) fn has_own_pull(&self, catalog: &CatalogName, pull: &PullInputs) -> bool {
        self.of(catalog, |known| known.own_pull.as_ref() == Some(pull))
    }

    /// Returns the pulls that this process has begun and not counted off.
    pub(super) fn own_pulls(&self) -> Vec<(CatalogName, PullInputs)> {
        let known = self.0.lock();
        let own = known
            .iter()
            .filter_map(|(catalog, known)| Some((catalog.clone(), known.own_pull.clone()?)));
        own.collect()
    }

    /// Returns the chunks of the last image that this process pulled, if it was under these limits.
    pub(super) fn chunks(&self, catalog: &CatalogName, limits: &RenderLimits) -> ChunkLines {
        self.of(catalog, |known| match &known.chunks {
            Some(kept) if kept.limits == *limits => kept.lines.clone(),
            _ => ChunkLines::new(),
        })
    }

    /// Keeps the chunks of an image that was pulled under these limits.
    pub(super) fn set_chunks(
        &self,
        catalog: &CatalogName,
        limits: RenderLimits,
        lines: ChunkLines,
    ) {
        self.of(catalog, |known| {
            known.chunks = Some(KeptChunks { limits, lines });
        });
    }

    fn of<T>(&self, catalog: &CatalogName, work: impl FnOnce(&mut KnownCatalog) -> T) -> T {
        let mut known = self.0.lock();
        work(known.entry(catalog.clone()).or_default())
    }
}
