use std::time::{Duration, SystemTime};

use model::{CatalogName, ChangedPackages, Current, Outcome, Ring, Sha256, ValidationCounts};
use serde::{Serialize, Serializer};

use crate::PollError;

/// Result of one poll or rollback of one catalog. Its JSON is that of the command line and of the
/// poller.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Name of the catalog that was polled, rolled back or copied.
    pub catalog: CatalogName,
    /// Outcome; [`Outcome::Failed`] and [`Outcome::Refused`] come with an error.
    pub outcome: Outcome,
    /// Error, if the outcome is not a success. JSON has its causes too, on one line.
    #[serde(serialize_with = "error_text")]
    pub error: Option<PollError>,
    /// Revision that the source resolved to, such as a digest.
    pub digest: Option<String>,
    /// Content hash that is published now, if anything is.
    pub content_hash: Option<Sha256>,
    /// Serial of the published state; `None` if there is none.
    pub serial: Option<u64>,
    /// Packages that differ from the previous publication. Empty unless the outcome is
    /// [`Outcome::Published`].
    pub changes: ChangedPackages,
    /// Findings of the validation of the content that was published; `None` if it was not
    /// validated.
    #[serde(skip)]
    pub validation: Option<ValidationCounts>,
    /// Remarks of the last composition, such as required packages that it lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Place of a ring among the states of the catalog that it follows.
    #[serde(skip)]
    pub ring: Option<Box<Ring>>,
    /// Number of packages, and global groups, whose lines were validated. The findings about others
    /// were known.
    #[serde(skip)]
    pub packages_validated: usize,
    /// Number of layers that were fetched.
    pub layers_fetched: usize,
    /// Layers that were not fetched because they are known to hold no FBC.
    pub layers_skipped: usize,
    /// Bytes received from the source over the network.
    pub bytes_pulled: u64,
    /// Number of immutable objects written to the store.
    pub objects_published: u64,
    /// Stored bytes of these objects.
    pub bytes_published: u64,
    /// Duration of the poll, waits between its attempts included.
    #[serde(rename = "durationMs", serialize_with = "milliseconds")]
    pub duration: Duration,
}

impl Report {
    /// Returns the report of a poll that has not begun.
    pub fn new(catalog: CatalogName) -> Self {
        Self {
            catalog,
            outcome: Outcome::Failed,
            error: None,
            digest: None,
            content_hash: None,
            serial: None,
            changes: ChangedPackages::default(),
            validation: None,
            notices: Vec::new(),
            ring: None,
            packages_validated: 0,
            bytes_pulled: 0,
            layers_fetched: 0,
            layers_skipped: 0,
            objects_published: 0,
            bytes_published: 0,
            duration: Duration::ZERO,
        }
    }

    /// Records the state that is published now.
    pub fn describe(&mut self, current: Option<&Current>) {
        self.content_hash = current.map(|current| current.content_hash);
        self.serial = current.map(|current| current.serial);
    }

    /// Returns the time at which the next state of a ring is old enough.
    pub fn next_at(&self) -> Option<SystemTime> {
        self.ring.as_ref()?.next_at()
    }

    /// Records the outcome and the duration.
    pub fn end(&mut self, ended: Result<Outcome, PollError>, duration: Duration) {
        self.outcome = match &ended {
            Ok(outcome) => *outcome,
            Err(error) => error.outcome(),
        };
        self.error = ended.err();
        self.duration = duration;
    }

    /// Returns true if the revision failed, and this program does not pull it again with these
    /// settings unless a poll is forced. A refused revision has not failed.
    pub fn failed_for_good(&self) -> bool {
        let is_final = self.error.as_ref().is_some_and(PollError::is_final);
        is_final && self.outcome == Outcome::Failed
    }

    /// Returns the error and its causes on one line, and the settings that would admit what exceeds
    /// a limit.
    pub fn error_text(&self) -> Option<String> {
        self.error.as_ref().map(PollError::text)
    }
}

fn error_text<S: Serializer>(error: &Option<PollError>, serializer: S) -> Result<S::Ok, S::Error> {
    error.as_ref().map(PollError::text).serialize(serializer)
}

/// Writes a duration as a whole number of milliseconds.
///
/// # Errors
/// The error of the serializer.
pub fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    duration.as_millis().serialize(serializer)
}
