//! Ways that share their steps.

use std::iter;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::UpgradeStep;

/// Way of which each step leads to the first entry that updates the bundle before, without its
/// start. It shares its steps with other ways of the channel.
#[derive(Debug, Clone, Default)]
pub struct UpgradeWay {
    pub(super) start: WayStart,
    pub(super) first: Option<FirstStep>,
    pub(super) entries: Arc<StepTable>,
    /// Number of steps.
    pub(super) length: usize,
    /// Number of the last entry.
    pub(super) last: Option<usize>,
}

/// Start of a way among the entries of its channel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum WayStart {
    /// It is no entry.
    #[default]
    Outside,
    /// It is an entry, and the way is that of the entry.
    Entry(usize),
    /// It is an entry, but the installed version is another one, with another first step.
    OtherVersion,
}

/// Entries by their number.
pub(super) type StepTable = Vec<TableEntry>;

#[derive(Debug)]
pub(super) struct TableEntry {
    /// Bundle of the entry, without a field that offers it.
    pub(super) bundle: UpgradeStep,
    pub(super) next: Option<FirstStep>,
}

#[derive(Debug, Clone)]
pub(super) struct FirstStep {
    /// Number of the entry to which it leads.
    pub(super) to: usize,
    pub(super) step: UpgradeStep,
}

impl UpgradeWay {
    /// Returns the number of steps.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns true for a way without steps.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the steps in their order.
    pub fn steps(&self) -> impl Iterator<Item = &UpgradeStep> {
        self.first_steps().map(|first| &first.step)
    }

    /// Returns the numbers of the entries to which the steps lead, in the graph of the way.
    pub fn entries(&self) -> impl Iterator<Item = usize> {
        self.first_steps().map(|first| first.to)
    }

    fn first_steps(&self) -> impl Iterator<Item = &FirstStep> {
        let first = self.first.as_ref();
        iter::successors(first, |step| self.entries[step.to].next.as_ref()).take(self.length)
    }

    /// Returns the last bundle; `None` for a way without steps.
    pub fn last(&self) -> Option<&UpgradeStep> {
        Some(self.bundle(self.last?))
    }

    /// Returns the bundle of an entry in the graph of the way.
    ///
    /// # Panics
    /// Panics if there is no such entry.
    pub fn bundle(&self, entry: usize) -> &UpgradeStep {
        &self.entries[entry].bundle
    }
}

impl Serialize for UpgradeWay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.steps())
    }
}
