//! Revisions that are not pulled again: those that cannot be published, and those under which the process died.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use model::text::chain;
use model::{CatalogName, OpenPulls, Outcome, PullInputs, RENDER_VERSION, RejectedRevision, Sha256, Status};
use source::Digest;
use tokio::time::timeout;

use super::{once::Poll, process};
use crate::{
    Catalog, Mirror, PollError, Report, Transaction,
    status::{update_status, without_pull},
};

/// Number of pulls of one revision whose process died, after which the revision is not pulled any more. One death may be a
/// deployment, a power failure or another catalog; `kill -9`, the kernel without memory and a crash all look the same from
/// outside. A second one in a row, of a pull that ran alone, is taken for the fault of the revision.
const DEATHS_MAX: usize = 2;

/// Maximum number of records of one revision. Only forced pulls add to [`DEATHS_MAX`].
const RECORDS_MAX: usize = 16;

/// Maximum time to remove the records of cancelled pulls. A supervisor kills a process that does not stop soon.
const WITHDRAW_MAX: Duration = Duration::from_secs(5);

/// Records of the pulls of this process in `status.json`, by their identifiers. None of them is a death: this process lives.
#[derive(Debug, Default)]
pub(crate) struct PullRecords(Mutex<HashMap<String, CatalogName>>);

/// One pull with its record in `status.json`.
#[derive(Debug, Clone)]
pub(crate) struct OpenPull {
    /// Identifier of the record.
    pub(crate) id: String,
    inputs: PullInputs,
    /// Snapshot that was published when it began.
    base: Option<Sha256>,
}

impl PullRecords {
    fn all(&self) -> MutexGuard<'_, HashMap<String, CatalogName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a record that was removed from `status.json`.
    pub(crate) fn forget(&self, id: &str) {
        self.all().remove(id);
    }
}

impl Mirror {
    /// Removes the records of pulls whose polls were dropped before their end. To be called before an orderly end of the
    /// process: a record that stays counts as a death of the process.
    pub async fn withdraw_pulls(&self) {
        let records: Vec<_> = self.pull_records.all().clone().into_iter().collect();
        let withdrawing = async {
            for (id, catalog) in &records {
                self.withdraw_record(id, catalog).await;
            }
        };
        if timeout(WITHDRAW_MAX, withdrawing).await.is_err() {
            tracing::warn!("cannot record in time that pulls were cancelled");
        }
    }

    async fn withdraw_record(&self, id: &str, catalog: &CatalogName) {
        let withdrawn = update_status(&*self.store, catalog, |before| {
            let before = before.filter(|before| has_record(before, id))?;
            Some(without_pull(before.clone(), id))
        });
        match withdrawn.await {
            Ok(_) => self.pull_records.forget(id),
            // This process goes on to know it, and does not take it for a death.
            Err(error) => tracing::warn!(%catalog, error = chain(&error), "cannot record that the pull was cancelled"),
        }
    }

    /// Returns everything that decides the result of pulling a revision, the published state excepted.
    pub(crate) fn pull_inputs(&self, catalog: &Catalog, digest: &Digest) -> PullInputs {
        let images = self.images(catalog);
        let images = images.settings();
        let policy = catalog.policy.as_ref().map(trust::policy::Policy::hash);
        // All fields of the limits, also of those that are added later. The text is only compared within one version.
        let settings = format!(
            "{} {:?} {} {:?} {:?} {policy:?} {:?}",
            catalog.source,
            self.render_limits(catalog),
            self.settings.render.documents.capacity(),
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
}

impl Poll<'_> {
    /// Fails if the revision cannot be published, or if the process died under it. A forced poll tries it all the same.
    pub(crate) fn refuse_known(&self, transaction: &Transaction, digest: &Digest) -> Result<(), PollError> {
        let Some(status) = self.status.filter(|_| !self.force) else {
            return Ok(());
        };
        let inputs = self.mirror.pull_inputs(self.catalog, digest);
        self.refuse_killer(status, &inputs)?;
        match &status.rejected {
            // Another published state may make a suspicious result a good one.
            Some(known) if known.inputs == inputs && known.base == base(transaction) => Err(PollError::KnownRevision {
                revision: inputs.revision,
                outcome: known.outcome,
                kind: known.kind,
                error: known.error.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Returns true if a pull of this revision has begun before and not ended.
    pub(crate) fn is_suspect(&self, digest: &Digest) -> bool {
        let inputs = self.mirror.pull_inputs(self.catalog, digest);
        self.status.is_some_and(|status| self.deaths(status, &inputs) > 0)
    }

    /// Records in `status.json` that the revision is pulled from now on. Without that document the pull is not recorded,
    /// which is no error.
    ///
    /// # Errors
    /// [`PollError::Killer`] if the process died under this revision.
    pub(crate) async fn open_pull(&mut self, transaction: &Transaction, digest: &Digest) -> Result<(), PollError> {
        let inputs = self.mirror.pull_inputs(self.catalog, digest);
        if self.pull.as_ref().is_some_and(|pull| pull.inputs == inputs) {
            // Another attempt of the same poll.
            return Ok(());
        }
        let pull = OpenPull {
            id: self.pull.as_ref().map_or_else(
                || process::pull_id((self.mirror.settings.env.rng)()),
                |pull| pull.id.clone(),
            ),
            inputs,
            base: base(transaction),
        };
        // Before the write: one whose answer is lost, or that is cancelled, may have taken effect.
        let name = &self.catalog.name;
        self.mirror.pull_records.all().insert(pull.id.clone(), name.clone());
        self.pull = Some(pull.clone());
        let refused = Mutex::new(None);
        let written = update_status(&*self.mirror.store, name, |before| {
            // Read anew: two processes that start together must not count as one.
            let killer = before
                .filter(|_| !self.force)
                .map(|before| self.refuse_killer(before, &pull.inputs));
            if let Some(Err(error)) = killer {
                *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                return None;
            }
            Some(self.with_record(before, &pull))
        });
        if let Err(error) = written.await {
            tracing::warn!(error = chain(&error), "cannot record that a revision is pulled");
        }
        match refused.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Removes the record of the pull, which has not ended and does not go on.
    pub(crate) async fn withdraw_pull(&mut self) {
        if let Some(pull) = self.pull.take() {
            self.mirror.withdraw_record(&pull.id, &self.catalog.name).await;
        }
    }

    fn with_record(&self, before: Option<&Status>, pull: &OpenPull) -> Status {
        let mut status = before.cloned().unwrap_or_else(|| self.first_status());
        let open = status.open_pulls.take().filter(|open| open.inputs == pull.inputs);
        let mut pulls = open.map(|open| open.pulls).unwrap_or_default();
        pulls.retain(|id| !self.mirror.pull_records.all().contains_key(id));
        while pulls.len() >= RECORDS_MAX {
            pulls.pop_first();
        }
        pulls.insert(pull.id.clone());
        Status {
            open_pulls: Some(OpenPulls {
                inputs: pull.inputs.clone(),
                pulls,
            }),
            ..status
        }
    }

    /// Returns the number of pulls of other processes that began and did not end. Those of processes of this machine that
    /// still run do not count. One that runs on another machine counts: an error for it ends with that pull, which removes
    /// its record.
    fn deaths(&self, status: &Status, inputs: &PullInputs) -> usize {
        let open = status.open_pulls.as_ref().filter(|open| open.inputs == *inputs);
        let own = self.mirror.pull_records.all();
        let others = open.into_iter().flat_map(|open| &open.pulls);
        others
            .filter(|id| !own.contains_key(*id) && !process::runs_beside(id))
            .count()
    }

    fn refuse_killer(&self, status: &Status, inputs: &PullInputs) -> Result<(), PollError> {
        let deaths = self.deaths(status, inputs);
        if deaths < DEATHS_MAX {
            return Ok(());
        }
        Err(PollError::Killer {
            revision: inputs.revision.clone(),
            program: inputs.program.clone(),
            deaths,
        })
    }

    /// Returns the status of a catalog whose first poll has not ended.
    fn first_status(&self) -> Status {
        Status {
            source: self.catalog.source.to_string(),
            last_poll: (self.mirror.settings.env.clock)(),
            outcome: Outcome::Failed,
            last_success: None,
            error: Some("the first poll has not ended: it is running, or its process died".to_owned()),
            failures: 0,
            duration_ms: 0,
            pull_ms: None,
            bytes_pulled: 0,
            bytes_published: 0,
            empty_layers: None,
            open_pulls: None,
            rejected: None,
            validation: None,
        }
    }
}

impl OpenPull {
    /// Returns the record of a revision that cannot be published, for an error that says so.
    pub(crate) fn rejected(&self, report: &Report) -> RejectedRevision {
        RejectedRevision {
            inputs: self.inputs.clone(),
            base: self.base,
            outcome: report.outcome,
            kind: report.error.as_ref().map(PollError::kind).unwrap_or_default(),
            error: report.error_text().unwrap_or_default(),
        }
    }
}

fn has_record(status: &Status, id: &str) -> bool {
    let open = status.open_pulls.as_ref();
    open.is_some_and(|open| open.pulls.contains(id))
}

fn base(transaction: &Transaction) -> Option<Sha256> {
    transaction.base().map(|base| base.snapshot.digest.sha256)
}
