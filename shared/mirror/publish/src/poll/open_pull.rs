//! Revisions that are not pulled again: those that cannot be published, and those under which the
//! process died.

use std::time::{Duration, SystemTime};

use model::text::Chain;
use model::{CatalogName, Outcome, PullInputs, RENDER_VERSION, RejectedRevision, Sha256, Status};
use source::{Digest, Sources};
use trust::policy::Policy;

use super::mirror::Mirror;
use crate::{Catalog, PollError, status::update_status};

/// Number of pulls of one revision whose process died, after which the revision is not pulled any
/// more. One death may be a deployment, a power failure or another catalog; `kill -9`, the kernel
/// without memory and a crash all look the same from outside. A second one in a row, of a pull that
/// ran alone, is taken for the fault of the revision.
const DEATHS_MAX: u32 = 2;

/// Time in which processes that are started at the same time begin their pulls.
const START_TIME: Duration = Duration::from_secs(10);

/// Pull of one revision that `status.json` records.
#[derive(Debug)]
pub(super) struct OpenPull {
    pub(super) inputs: PullInputs,
    /// Snapshot that was published when it began.
    pub(super) base: Option<Sha256>,
}

/// Returns everything that decides the result of pulling a revision, the published state excepted.
pub(super) fn inputs(
    mirror: &Mirror,
    catalog: &Catalog,
    images: &Sources,
    revision: &Digest,
) -> PullInputs {
    let pulled = catalog.source.pulled();
    let policy = pulled
        .and_then(|pulled| pulled.policy.as_ref())
        .map(Policy::hash);
    // All fields of the limits, also of those that are added later. The text is only compared
    // within one version.
    let settings = format!(
        "{} {:?} {} {:?} {:?} {policy:?} {:?} {:?}",
        catalog.source,
        mirror.limits(catalog).catalog,
        mirror.settings.limits.memory_bytes,
        images.settings.limits,
        images.settings.platform,
        catalog.validation,
        catalog.hold
    );
    PullInputs {
        revision: revision.to_string(),
        program: format!("{}/{RENDER_VERSION}", env!("CARGO_PKG_VERSION")),
        settings: Sha256::of(settings.as_bytes()),
    }
}

/// Returns the number of pulls of a revision that began and did not end, without the one of this
/// process. They are running elsewhere, or their processes died.
pub(super) fn others(
    mirror: &Mirror,
    catalog: &CatalogName,
    status: &Status,
    inputs: &PullInputs,
) -> u32 {
    let count = status.open_pulls_of(inputs).map_or(0, |open| open.count);
    if mirror.known.has_own_pull(catalog, inputs) {
        return count.saturating_sub(1);
    }
    count
}

/// Returns the number of processes that died while they pulled a revision, as far as this process
/// can tell them from those that pull it now.
///
/// After the time of a pull all others are dead. Until then the last one may be running, and all
/// may be if they began at the same time or beside this process. A crash that repeats at once is
/// seen one death later, and not within [`START_TIME`].
fn deaths(mirror: &Mirror, catalog: &Catalog, status: &Status, inputs: &PullInputs) -> u32 {
    let Some(open) = status.open_pulls_of(inputs) else {
        return 0;
    };
    let others = others(mirror, &catalog.name, status, inputs);
    let now = (mirror.settings.env.clock)();
    let pull_time = mirror.limits(catalog).pull_time;
    if !is_within(pull_time, open.last_begun, now) {
        return others;
    }
    if is_within(START_TIME, open.first_begun, now) || open.last_begun >= mirror.started {
        return 0;
    }
    others.saturating_sub(1)
}

/// True if less than `time` has passed. A time in the future was written by a wrong clock.
fn is_within(time: Duration, since: SystemTime, now: SystemTime) -> bool {
    now.duration_since(since).is_ok_and(|passed| passed < time)
}

/// Fails if a revision cannot be published over the Snapshot `base`, or if the process died under
/// it.
pub(super) fn refuse_known(
    mirror: &Mirror,
    catalog: &Catalog,
    status: &Status,
    inputs: &PullInputs,
    base: Option<Sha256>,
) -> Result<(), PollError> {
    refuse_killer(inputs, deaths(mirror, catalog, status, inputs))?;
    match &status.rejected {
        // Another published state may make a suspicious result a good one.
        Some(known) if known.inputs == *inputs && known.base == base => match &known.held {
            Some(hold) if hold.is_over((mirror.settings.env.clock)()) => Ok(()),
            Some(hold) => Err(PollError::Held {
                text: known.error.clone(),
                hold: hold.clone(),
                is_known: true,
            }),
            None => Err(PollError::KnownRevision(Box::new(known.clone()))),
        },
        _ => Ok(()),
    }
}

/// Counts in `status.json` that a pull begins. Without that document the pull is not counted, which
/// is no error.
///
/// # Errors
/// [`PollError::Killer`] if the process died under this revision, unless the poll is forced.
pub(super) async fn begin(
    mirror: &Mirror,
    catalog: &Catalog,
    inputs: &PullInputs,
    is_forced: bool,
) -> Result<(), PollError> {
    // A pull of this process that could not be counted off is counted already.
    let is_counted = mirror.known.has_own_pull(&catalog.name, inputs);
    // Before the write: one whose answer is lost, or that is cancelled, may have taken effect. To
    // count off a pull that is not recorded forgets at most one death.
    mirror
        .known
        .set_own_pull(&catalog.name, Some(inputs.clone()));
    let mut allowed = Ok(());
    let now = (mirror.settings.env.clock)();
    let written = update_status(&*mirror.store, &catalog.name, |before| {
        if let Some(before) = before
            && !is_forced
        {
            // Read anew: another process may have begun meanwhile.
            allowed = refuse_killer(inputs, deaths(mirror, catalog, before, inputs));
        }
        allowed.as_ref().ok()?;
        let mut next = before.cloned().unwrap_or_else(|| Status {
            error: Some(
                "the first poll has not ended: it is running, or its process died".to_owned(),
            ),
            ..Status::new(catalog.source.shown(), Outcome::Failed, now)
        });
        if !is_counted || next.open_pulls_of(inputs).is_none() {
            next.begin_pull(inputs, now);
        }
        Some(next)
    });
    if let Err(error) = written.await {
        tracing::warn!(
            error = %Chain(&error),
            "cannot record that a revision is pulled"
        );
    }
    if allowed.is_err() && !is_counted {
        mirror.known.set_own_pull(&catalog.name, None);
    }
    allowed
}

/// Counts off a pull of this process that has not ended and does not go on.
pub(super) async fn withdraw(mirror: &Mirror, catalog: &CatalogName, inputs: &PullInputs) {
    let withdrawn = update_status(&*mirror.store, catalog, |before| {
        let before = before?;
        before.open_pulls_of(inputs)?;
        let mut next = before.clone();
        next.end_pull(inputs);
        Some(next)
    });
    match withdrawn.await {
        Ok(()) => mirror.known.set_own_pull(catalog, None),
        // This process goes on to know it, and does not take it for a death.
        Err(error) => {
            tracing::warn!(%catalog, error = %Chain(&error), "cannot record that the pull was cancelled");
        }
    }
}

fn refuse_killer(inputs: &PullInputs, deaths: u32) -> Result<(), PollError> {
    if deaths < DEATHS_MAX {
        return Ok(());
    }
    let inputs = inputs.clone();
    Err(PollError::Killer { inputs, deaths })
}

impl OpenPull {
    /// Returns the record of a revision that cannot be published, for an error that says so.
    pub(super) fn rejected(&self, outcome: Outcome, error: &PollError) -> Option<RejectedRevision> {
        if !error.is_verdict() {
            return None;
        }
        Some(RejectedRevision {
            inputs: self.inputs.clone(),
            base: self.base,
            outcome,
            error: error.text(),
            kind: error.kind(),
            held: error.hold().cloned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_that_began_last_may_run_for_the_time_of_a_pull() {
        let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let minute = Duration::from_secs(60);
        for (passed, expected) in [(0, true), (59, true), (60, false), (3600, false)] {
            let now = began + Duration::from_secs(passed);
            assert_eq!(is_within(minute, began, now), expected, "{passed} s");
        }
        let earlier = began - Duration::from_secs(1);
        assert!(!is_within(minute, began, earlier), "a clock was wrong");
    }
}
