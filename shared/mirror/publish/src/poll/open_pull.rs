//! Revisions that are not pulled again: those that cannot be published, and those under which the
//! process died.

use std::{collections::BTreeSet, fs, process};

use model::text::Chain;
use model::{
    CatalogName, OpenPulls, Outcome, PullInputs, RENDER_VERSION, RejectedRevision, Sha256, Status,
};
use source::{Digest, Sources};
use trust::policy::Policy;

use super::mirror::Mirror;
use crate::{Catalog, PollError, status::update_status};

/// Number of pulls of one revision whose process died, after which the revision is not pulled any
/// more. One death may be a deployment, a power failure or another catalog; `kill -9`, the kernel
/// without memory and a crash all look the same from outside. A second one in a row, of a pull that
/// ran alone, is taken for the fault of the revision.
const DEATHS_MAX: usize = 2;

/// Maximum number of recorded processes. Only forced pulls add to [`DEATHS_MAX`].
const PROCESSES_MAX: usize = 16;

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
    let policy = pulled.and_then(|pulled| pulled.policy.as_ref());
    let policy = policy.map(Policy::hash);
    // All fields of the limits, also of those that are added later. The text is only compared
    // within one version.
    let settings = format!(
        "{} {:?} {} {:?} {:?} {policy:?} {:?}",
        catalog.source,
        mirror.limits(catalog).catalog,
        mirror.settings.limits.memory_bytes,
        images.settings.limits,
        images.settings.platform,
        catalog.validation
    );
    PullInputs {
        revision: revision.to_string(),
        program: format!("{}/{RENDER_VERSION}", env!("CARGO_PKG_VERSION")),
        settings: Sha256::of(settings.as_bytes()),
    }
}

/// Returns the number of processes that died while they pulled a revision. One that runs on another
/// machine counts until its pull ends.
pub(super) fn deaths(mirror: &Mirror, status: &Status, inputs: &PullInputs) -> usize {
    let lives = |process: &String| *process == mirror.process || runs_beside(process);
    status
        .pulling(inputs)
        .filter(|process| !lives(process))
        .count()
}

/// Fails if a revision cannot be published over the Snapshot `base`, or if the process died under
/// it.
pub(super) fn refuse_known(
    mirror: &Mirror,
    status: &Status,
    inputs: &PullInputs,
    base: Option<Sha256>,
) -> Result<(), PollError> {
    refuse_killer(inputs, deaths(mirror, status, inputs))?;
    match &status.rejected {
        // Another published state may make a suspicious result a good one.
        Some(known) if known.inputs == *inputs && known.base == base => {
            Err(PollError::KnownRevision(Box::new(known.clone())))
        }
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
    // Before the write: one whose answer is lost, or that is cancelled, may have taken effect. To
    // count off a pull that is not recorded changes nothing.
    mirror
        .known
        .set_own_pull(&catalog.name, Some(inputs.clone()));
    let mut allowed = Ok(());
    let now = (mirror.settings.env.clock)();
    let written = update_status(&*mirror.store, &catalog.name, |before| {
        if let Some(before) = before
            && !is_forced
        {
            // Read anew: two processes that start together must not count as one.
            allowed = refuse_killer(inputs, deaths(mirror, before, inputs));
        }
        allowed.as_ref().ok()?;
        let pulling = before.into_iter().flat_map(|before| before.pulling(inputs));
        let mut processes: BTreeSet<String> = pulling.cloned().collect();
        while processes.len() >= PROCESSES_MAX {
            processes.pop_first();
        }
        processes.insert(mirror.process.clone());
        let mut next = before.cloned().unwrap_or_else(|| Status {
            error: Some(
                "the first poll has not ended: it is running, or its process died".to_owned(),
            ),
            ..Status::new(catalog.source.to_string(), Outcome::Failed, now)
        });
        let inputs = inputs.clone();
        next.open_pulls = Some(OpenPulls { inputs, processes });
        Some(next)
    });
    if let Err(error) = written.await {
        tracing::warn!(
            error = %Chain(&error),
            "cannot record that a revision is pulled"
        );
    }
    allowed
}

/// Counts off a pull of this process that has not ended and does not go on.
pub(super) async fn withdraw(mirror: &Mirror, catalog: &CatalogName, inputs: &PullInputs) {
    let withdrawn = update_status(&*mirror.store, catalog, |before| {
        let before = before?;
        if !before
            .pulling(inputs)
            .any(|process| *process == mirror.process)
        {
            return None;
        }
        let mut next = before.clone();
        next.end_pull(inputs, &mirror.process);
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

fn refuse_killer(inputs: &PullInputs, deaths: usize) -> Result<(), PollError> {
    if deaths < DEATHS_MAX {
        return Ok(());
    }
    let inputs = inputs.clone();
    Err(PollError::Killer { inputs, deaths })
}

impl OpenPull {
    /// Returns the record of a revision that cannot be published, for an error that says so.
    pub(super) fn rejected(&self, outcome: Outcome, error: &PollError) -> Option<RejectedRevision> {
        error.is_verdict().then(|| RejectedRevision {
            inputs: self.inputs.clone(),
            base: self.base,
            outcome,
            error: error.text(),
            kind: error.kind(),
        })
    }
}

/// Returns the identifier of a mirror in this process: number and start of the process, because the
/// kernel uses numbers again, and 52 random bits. The start is in clock ticks since boot, and 0
/// where `/proc` does not tell.
pub(super) fn process_id(random: f64) -> String {
    let number = process::id().into();
    let start = started(number).unwrap_or_default();
    format!(
        "{number:x}.{start:x}.{:013x}",
        random.to_bits() & ((1 << 52) - 1)
    )
}

/// True if the pull belongs to another process of this machine that still runs. A pull of another
/// machine is never known to run.
fn runs_beside(id: &str) -> bool {
    let mut parts = id.split('.').map(|part| u64::from_str_radix(part, 16));
    let (Some(Ok(number)), Some(Ok(start)), Some(_)) = (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    // Another mirror in this process is one that ended.
    number != u64::from(process::id()) && started(number) == Some(start)
}

/// Returns the start of a running process (proc(5), field 22 of `/proc/PID/stat`); `None` if it
/// ended or cannot be seen.
fn started(number: u64) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name of the program, in parentheses, may hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    // A killed process whose parent has not asked for its end yet is a zombie.
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn pull_of_this_process_does_not_run_beside_it() {
        assert!(!runs_beside(&process_id(0.5)));
        for id in ["", "a", "1.2", "x.y.z", "0000000000000"] {
            assert!(!runs_beside(id), "{id}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pull_of_another_process_runs_until_that_ends() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let number = child.id().into();
        let start = started(number).unwrap();
        let id = format!("{number:x}.{start:x}.0");
        assert!(runs_beside(&id));
        let later = format!("{number:x}.{:x}.0", start + 1);
        assert!(!runs_beside(&later));
        child.kill().unwrap();
        // Not waited for: a zombie has ended.
        while started(number).is_some() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(!runs_beside(&id));
        child.wait().unwrap();
    }
}
