//! Removing what nothing names any more.

mod hold;
mod roots;
mod sweep;

use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt;
use layout::{Key, PREVIOUS_MAX};
use serde::Serialize;
use store::{Listed, ReadError, Store, StoreError};
use tokio_util::sync::CancellationToken;

pub(crate) use self::hold::{Hold, SIDE_BY_SIDE};
use self::roots::Roots;

/// The shortest grace period: far above the longest publication, and above the quarter of an hour by which the clock of
/// a writer may be wrong (S3 refuses requests beyond that, as `RequestTimeTooSkewed`).
const GRACE_MIN: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// What is kept besides what is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many earlier publications of a catalog are kept. Default: all that `current.json` remembers, 16.
    pub generations: usize,
    /// How long one is kept after it was replaced by its successor. Default: 30 days.
    pub max_age: Duration,
    /// How old an object must be to be removed, and how long ago a publication must have been replaced. Default: 24 h,
    /// for which shared caches may serve a stale `current.json` (`stale-if-error`). At least an hour.
    pub grace: Duration,
    /// Whether to remove nothing and only say what would be.
    pub dry_run: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            generations: PREVIOUS_MAX,
            max_age: 30 * DAY,
            grace: DAY,
            dry_run: false,
        }
    }
}

impl Settings {
    /// The shortest [`Settings::grace`].
    pub const GRACE_MIN: Duration = GRACE_MIN;

    /// What is said, and the default for what is not; `days` are those of [`Settings::max_age`].
    pub fn of(generations: Option<usize>, days: Option<u64>, grace: Option<Duration>) -> Self {
        let usual = Self::default();
        let seconds = |days: u64| Duration::from_secs(days.saturating_mul(DAY.as_secs()));
        Self {
            generations: generations.unwrap_or(usual.generations),
            max_age: days.map_or(usual.max_age, seconds),
            grace: grace.unwrap_or(usual.grace),
            dry_run: false,
        }
    }

    /// Whether [`gc()`] takes them.
    ///
    /// # Errors
    /// [`GcError::Grace`].
    pub fn check(&self) -> Result<(), GcError> {
        match self.grace < GRACE_MIN {
            true => Err(GcError::Grace(self.grace)),
            false => Ok(()),
        }
    }
}

/// What a garbage collection did, or would have done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GcReport {
    /// Whether nothing was removed because that was asked for.
    pub dry_run: bool,
    /// Catalogs with something published.
    pub catalogs: usize,
    /// Snapshots that are kept, published or earlier.
    pub snapshots: usize,
    /// Snapshots that were removed.
    pub expired: usize,
    /// Objects that something names.
    pub kept: Amount,
    /// Objects that were removed.
    pub swept: Amount,
    /// Objects that nothing names but that are too young to be removed.
    pub waiting: Amount,
    /// Whether it was stopped before it was done.
    pub stopped: bool,
    /// Objects that are still to be removed because it was stopped; none if it was before it knew them.
    pub left: Amount,
}

/// Some objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// How many.
    pub objects: u64,
    /// Their bytes as they are stored.
    pub bytes: u64,
}

impl Amount {
    const fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

/// Why nothing, or no more, was removed.
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// So short a grace period would take objects from publications under way.
    #[error("a grace period of {} s is too short, {} s is the least", .0.as_secs(), GRACE_MIN.as_secs())]
    Grace(Duration),
    /// What is named cannot be told.
    #[error("cannot tell what is named, so nothing more is removed")]
    Read(#[from] ReadError),
    /// A published Snapshot is not there.
    #[error("{0} is published and missing, so it cannot be told what it names: repair it first")]
    Missing(String),
    /// A Snapshot, published or earlier, is not the one that it should be.
    #[error("{0} is not the snapshot that was published, so it cannot be told what that names: repair it first")]
    Mistaken(String),
    /// The store cannot be listed or written.
    #[error("cannot remove what nothing names")]
    Store(#[from] StoreError),
}

/// Removes what neither a published Snapshot names nor an earlier one that is kept, nor a publication under way, and
/// what is old enough. Calling it again goes on where it stopped.
///
/// # Errors
/// [`GcError`]; as long as it cannot be told what is named, nothing is removed.
pub async fn gc(store: &dyn Store, settings: &Settings) -> Result<GcReport, GcError> {
    gc_until(store, settings, &CancellationToken::new()).await
}

/// As [`gc()`], but ends early, and as if it were done, once `stop` is cancelled. After that it only waits for the removals
/// that are under way and tells publications that they need not wait. To drop it instead makes the next one wait.
///
/// # Errors
/// As [`gc()`].
pub async fn gc_until(store: &dyn Store, settings: &Settings, stop: &CancellationToken) -> Result<GcReport, GcError> {
    settings.check()?;
    // Up to here nothing is announced, so it may be given up at any point.
    let Some(found) = stop.run_until_cancelled(look(store, settings)).await else {
        return Ok(GcReport {
            dry_run: settings.dry_run,
            stopped: true,
            ..GcReport::default()
        });
    };
    let (listed, mut roots) = found?;
    let mut report = roots.report();
    let condemned = condemned(listed, &roots, &mut report);
    if settings.dry_run {
        condemned
            .iter()
            .flatten()
            .for_each(|listed| sweep::count(listed, &mut report));
        return Ok(report);
    }
    for batch in condemned {
        sweep::sweep(store, batch, &mut roots, stop, &mut report).await?;
    }
    report.stopped = report.left.objects > 0;
    Ok(report)
}

/// Everything that lies there, and what of it is named.
async fn look(store: &dyn Store, settings: &Settings) -> Result<(Vec<Listed>, Roots), GcError> {
    let now = if settings.dry_run {
        SystemTime::now()
    } else {
        hold::store_time(store).await?
    };
    let mut roots = Roots::new(settings.clone(), now);
    // Listed before the marks are read: what is published meanwhile is not in it.
    let listed = store.list("").try_collect().await?;
    roots.read(store).await?;
    Ok((listed, roots))
}

/// Snapshots go first: half-way, none is left that names what is gone.
fn condemned(listed: Vec<Listed>, roots: &Roots, report: &mut GcReport) -> [Vec<Listed>; 2] {
    let mut condemned = Vec::new();
    for object in listed {
        if roots.names(&object.key) {
            report.kept.add(object.size);
        } else if roots.is_old(object.modified) {
            condemned.push(object);
        } else {
            report.waiting.add(object.size);
        }
    }
    let is_snapshot = |object: &Listed| matches!(object.key, Key::Snapshot(..));
    let (snapshots, others) = condemned.into_iter().partition(is_snapshot);
    [snapshots, others]
}
