use std::time::SystemTime;

use model::{Outcome, Status};

use super::{SOURCE, first_published_at};

/// Builder of a `status.json`.
///
/// The default is a poll of [`SOURCE`] at [`first_published_at()`] that found nothing new and took a millisecond.
#[derive(Clone, Debug)]
pub struct StatusBuilder(Status);

impl StatusBuilder {
    /// Creates the builder of a poll that found nothing new.
    #[expect(
        clippy::new_without_default,
        reason = "the defaults are those of a test, not of the document"
    )]
    pub fn new() -> Self {
        Self(Status {
            duration_ms: 1,
            ..Status::new(SOURCE.to_owned(), Outcome::Unchanged, first_published_at())
        })
    }

    /// Sets the configured source.
    #[must_use]
    pub fn source(mut self, reference: &str) -> Self {
        reference.clone_into(&mut self.0.source);
        self
    }

    /// Sets the time of the last poll, and of the last success unless the poll failed.
    #[must_use]
    pub fn last_poll(mut self, time: SystemTime) -> Self {
        self.0.last_poll = time;
        if self.0.outcome.is_success() {
            self.0.last_success = Some(time);
        }
        self
    }

    /// Sets the outcome of the last poll.
    #[must_use]
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.0.outcome = outcome;
        self
    }

    /// Makes the last poll the last of several that failed with this error. The last success stays.
    #[must_use]
    pub fn failed(mut self, failures: u64, error: &str) -> Self {
        self.0.outcome = Outcome::Failed;
        self.0.failures = failures;
        self.0.error = Some(error.to_owned());
        self
    }

    /// Changes any other field.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Status)) -> Self {
        change(&mut self.0);
        self
    }

    /// Builds the document.
    pub fn build(self) -> Status {
        self.0
    }
}
