//! Ranges of many entries, answered by one search in their sorted places.

use std::iter;

use semver::Version;
use work::{Budget, OverBudget};

use super::UpgradeEntry;
use crate::version::VersionPlace;

/// Steps for an interval: two places that are sorted, and the nodes that cover it.
const INTERVAL_STEPS: u64 = 64;

/// Ranges of the entries of a channel: a segment tree over the gaps between all places at which an
/// interval of a range starts or ends.
///
/// An interval lies in at most two nodes of each level, and a version is in the ranges of all
/// entries between its gap and the root.
#[derive(Debug, Default)]
pub(super) struct RangeIndex {
    /// Places in ascending order. A gap has the number of the place before it.
    places: Vec<VersionPlace>,
    /// Numbers of entries in ascending order, by node. The root is node 1, the children of node n
    /// are 2n and 2n + 1, and the node of a gap is its number and the number of places.
    nodes: Vec<Vec<usize>>,
}

impl RangeIndex {
    /// Reads the ranges of entries.
    pub(super) fn new(entries: &[UpgradeEntry<'_>], budget: &Budget) -> Result<Self, OverBudget> {
        let mut places = Vec::new();
        for entry in entries {
            for (start, end) in entry.intervals() {
                budget.charge(INTERVAL_STEPS)?;
                places.push(VersionPlace::of_start(start));
                places.push(VersionPlace::of_end(end));
            }
        }
        places.sort_unstable();
        places.dedup();
        let mut index = Self {
            nodes: vec![Vec::new(); 2 * places.len()],
            places,
        };
        for (number, entry) in entries.iter().enumerate() {
            for (start, end) in entry.intervals() {
                let start = index.gap_after(&VersionPlace::of_start(start));
                let end = index.gap_after(&VersionPlace::of_end(end));
                index.insert(number, start, end);
            }
        }
        Ok(index)
    }

    fn gap_after(&self, place: &VersionPlace) -> usize {
        self.places.partition_point(|other| other < place)
    }

    /// Adds an entry to the nodes that cover the gaps from `start` to before `end`.
    fn insert(&mut self, number: usize, start: usize, end: usize) {
        let mut left = start + self.places.len();
        let mut right = end + self.places.len();
        while left < right {
            if left % 2 == 1 {
                self.nodes[left].push(number);
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                self.nodes[right].push(number);
            }
            left /= 2;
            right /= 2;
        }
    }

    /// Returns the nodes between the gap of a version and the root. No entry is in two of them.
    pub(super) fn path(&self, version: &Version) -> impl Iterator<Item = usize> + use<> {
        let gap = self
            .places
            .partition_point(|place| place.is_before(version))
            .checked_sub(1);
        let leaf = gap.map(|gap| gap + self.places.len());
        iter::successors(leaf, |node| (*node > 1).then_some(node / 2))
    }

    /// Returns the numbers of entries by node, each in ascending order.
    pub(super) fn nodes(&self) -> &[Vec<usize>] {
        &self.nodes
    }

    /// Returns the first entry whose range has the version.
    pub(super) fn first(&self, version: &Version) -> Option<usize> {
        let firsts = self
            .path(version)
            .filter_map(|node| self.nodes[node].first());
        firsts.min().copied()
    }

    /// Returns the places at which a range starts or ends, in ascending order. All versions between
    /// two of them are in the same ranges.
    pub(super) fn places(&self) -> &[VersionPlace] {
        &self.places
    }
}
