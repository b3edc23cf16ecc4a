//! Revisions that are not pulled again: those that cannot be published, and those under which the
//! process died.

use std::{collections::BTreeSet, fs, process, time::Duration};

use model::text::chain;
use model::{
    CatalogName, OpenPulls, Outcome, PullInputs, RENDER_VERSION, RejectedRevision, Sha256, Status,
};
use source::Digest;
use tokio::time::timeout;

use super::{mirror::KnownCatalog, once::Poll};
use crate::{Catalog, Mirror, PollError, Transaction, status::update_status};

/// Number of pulls of one revision whose process died, after which the revision is not pulled any
/// more. One death may be a deployment, a power failure or another catalog; `kill -9`, the kernel
/// without memory and a crash all look the same from outside. A second one in a row, of a pull that
/// ran alone, is taken for the fault of the revision.
const DEATHS_MAX: usize = 2;

/// Maximum number of recorded processes. Only forced pulls add to [`DEATHS_MAX`].
const PROCESSES_MAX: usize = 16;

/// Maximum time to count off cancelled pulls. A supervisor kills a process that does not stop soon.
const WITHDRAW_MAX: Duration = Duration::from_secs(5);

/// Pull of one revision that `status.json` records.
#[derive(Debug, Clone)]
pub(crate) struct OpenPull {
    pub(crate) inputs: PullInputs,
    /// Snapshot that was published when it began.
    pub(crate) base: Option<Sha256>,
}

impl Mirror {
    /// Counts off the pulls whose polls were dropped before their end. To be called before an
    /// orderly end of the process: a pull that stays counts as a death of the process.
    pub async fn withdraw_pulls(&self) {
        let open = |(catalog, known): (&CatalogName, &KnownCatalog)| {
            Some((catalog.clone(), known.own_pull.clone()?))
        };
        let own: Vec<_> = self.known.lock().iter().filter_map(open).collect();
        let withdrawing = async {
            for (catalog, inputs) in &own {
                self.withdraw_pull(catalog, inputs).await;
            }
        };
        if timeout(WITHDRAW_MAX, withdrawing).await.is_err() {
            tracing::warn!("cannot record in time that pulls were cancelled");
        }
    }

    /// Counts off a pull that has not ended and does not go on.
    pub(crate) async fn withdraw_pull(&self, catalog: &CatalogName, inputs: &PullInputs) {
        let withdrawn = update_status(&*self.store, catalog, |before| {
            let is_recorded = |before: &&Status| {
                before
                    .pulling(inputs)
                    .any(|process| *process == self.process)
            };
            let mut next = before.filter(is_recorded)?.clone();
            next.end_pull(inputs, &self.process);
            Some(next)
        });
        match withdrawn.await {
            Ok(()) => self.known(catalog, |known| known.own_pull = None),
            // This process goes on to know it, and does not take it for a death.
            Err(error) => {
                tracing::warn!(%catalog, error = chain(&error), "cannot record that the pull was cancelled");
            }
        }
    }

    /// Returns everything that decides the result of pulling a revision, the published state
    /// excepted.
    pub(crate) fn pull_inputs(&self, catalog: &Catalog, digest: &Digest) -> PullInputs {
        let images = self.images(catalog).settings;
        let policy = catalog
            .source
            .pulled()
            .and_then(|pulled| pulled.policy.as_ref())
            .map(trust::policy::Policy::hash);
        // All fields of the limits, also of those that are added later. The text is only compared
        // within one version.
        let settings = format!(
            "{} {:?} {} {:?} {:?} {policy:?} {:?}",
            catalog.source,
            self.limits(catalog).catalog,
            self.settings.limits.memory_bytes,
            images.limits,
            images.platform,
            catalog.validation
        );
        PullInputs {
            revision: digest.to_string(),
            program: format!("{}/{RENDER_VERSION}", env!("CARGO_PKG_VERSION")),
            settings: Sha256::of(settings.as_bytes()),
        }
    }

    /// Returns the number of processes that died while they pulled a revision. One that runs on
    /// another machine counts until its pull ends.
    pub(crate) fn deaths(&self, status: &Status, inputs: &PullInputs) -> usize {
        let lives = |process: &String| *process == self.process || runs_beside(process);
        status
            .pulling(inputs)
            .filter(|process| !lives(process))
            .count()
    }
}

impl Poll<'_> {
    /// Fails if a revision cannot be published over what is published, or if the process died under
    /// it, unless the poll is forced.
    pub(crate) fn refuse_known(
        &self,
        transaction: &Transaction,
        digest: &Digest,
    ) -> Result<(), PollError> {
        let Some(status) = self.options.before.as_ref().filter(|_| !self.options.force) else {
            return Ok(());
        };
        let inputs = self.mirror.pull_inputs(self.catalog, digest);
        refuse_killer(&inputs, self.mirror.deaths(status, &inputs))?;
        match &status.rejected {
            // Another published state may make a suspicious result a good one.
            Some(known) if known.inputs == inputs && known.base == snapshot_of(transaction) => {
                Err(PollError::KnownRevision(Box::new(known.clone())))
            }
            _ => Ok(()),
        }
    }

    /// Counts in `status.json` that a pull of the revision begins, unless an earlier attempt of
    /// this poll did so. Without that document the pull is not counted, which is no error.
    ///
    /// # Errors
    /// [`PollError::Killer`] if the process died under this revision, unless the poll is forced.
    pub(crate) async fn begin_pull(
        &mut self,
        transaction: &Transaction,
        digest: &Digest,
    ) -> Result<(), PollError> {
        let (mirror, catalog) = (self.mirror, self.catalog);
        let inputs = mirror.pull_inputs(catalog, digest);
        if self.pull.as_ref().is_some_and(|pull| pull.inputs == inputs) {
            return Ok(());
        }
        // Before the write: one whose answer is lost, or that is cancelled, may have taken effect.
        // To count off a pull that is not recorded changes nothing.
        mirror.known(&catalog.name, |known| known.own_pull = Some(inputs.clone()));
        let (mut allowed, is_forced) = (Ok(()), self.options.force);
        let now = (mirror.settings.env.clock)();
        let written = update_status(&*mirror.store, &catalog.name, |before| {
            // Read anew: two processes that start together must not count as one.
            allowed = match before {
                Some(before) if !is_forced => {
                    refuse_killer(&inputs, mirror.deaths(before, &inputs))
                }
                _ => Ok(()),
            };
            allowed.as_ref().ok()?;
            let pulling = before
                .into_iter()
                .flat_map(|before| before.pulling(&inputs));
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
                error = chain(&error),
                "cannot record that a revision is pulled"
            );
        }
        allowed?;
        let base = snapshot_of(transaction);
        self.pull = Some(OpenPull { inputs, base });
        Ok(())
    }
}

fn snapshot_of(transaction: &Transaction) -> Option<Sha256> {
    transaction.base().map(|base| base.snapshot.digest.sha256)
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
    pub(crate) fn rejected(&self, outcome: Outcome, error: &PollError) -> Option<RejectedRevision> {
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
