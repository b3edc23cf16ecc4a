use std::time::Duration;

use model::{Availability, Current, ObjectDigest, Previous, Publication, Snapshot, SourceRef};

use super::{SOURCE, first_published_at, snapshot::stored};

/// Returns the first publication of a Snapshot. [`CurrentBuilder`] makes all others.
pub fn current(snapshot: &Snapshot) -> Current {
    CurrentBuilder::new(snapshot).build()
}

/// Builder of a pointer, `current.json`. It is unsigned.
///
/// The default is the first publication, of [`SOURCE`] at revision `sha256:00`. It is published at
/// [`first_published_at()`], and each later one a minute after the one before.
#[derive(Clone, Debug)]
#[must_use]
pub struct CurrentBuilder {
    snapshot: Snapshot,
    stored: ObjectDigest,
    before: Option<Current>,
    serial: Option<u64>,
    previous: Option<Vec<Previous>>,
    source: SourceRef,
}

impl CurrentBuilder {
    /// Creates the builder of the first publication of a Snapshot.
    pub fn new(snapshot: &Snapshot) -> Self {
        Self {
            snapshot: snapshot.clone(),
            stored: ObjectDigest::of(&stored(snapshot)),
            before: None,
            serial: None,
            previous: None,
            source: SourceRef {
                reference: SOURCE.to_owned(),
                revision: "sha256:00".to_owned(),
                ..SourceRef::default()
            },
        }
    }

    /// Publishes after another state: the serial grows by one, and `previous` starts with that
    /// state.
    pub fn after(mut self, before: Option<&Current>) -> Self {
        self.before = before.cloned();
        self
    }

    /// Sets the serial. Default 1, or that of the state before plus one.
    pub fn serial(mut self, serial: u64) -> Self {
        self.serial = Some(serial);
        self
    }

    /// Sets the earlier publications.
    pub fn previous(mut self, previous: Vec<Previous>) -> Self {
        self.previous = Some(previous);
        self
    }

    /// Sets the configured source and its revision.
    pub fn source(mut self, reference: &str, revision: &str) -> Self {
        reference.clone_into(&mut self.source.reference);
        revision.clone_into(&mut self.source.revision);
        self
    }

    /// Names other stored bytes as the Snapshot, for tests of damaged or foreign Snapshots.
    pub fn stored_snapshot(self, stored: ObjectDigest) -> Self {
        Self { stored, ..self }
    }

    /// Builds the pointer.
    pub fn build(self) -> Current {
        let publication = Publication {
            snapshot: self.stored,
            source: self.source,
            render_version: self.snapshot.render_version,
            rolled_back: None,
            availability: Availability::Available,
        };
        let mut current = Current::publish(self.before.as_ref(), &self.snapshot, publication);
        current.serial = self.serial.unwrap_or(current.serial);
        current.previous = self.previous.unwrap_or(current.previous);
        current.published_at =
            first_published_at() + Duration::from_secs(60 * current.serial.saturating_sub(1));
        current
    }
}
