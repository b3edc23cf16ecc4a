//! Steps that follow if each leads to the first entry that updates the bundle before.

use std::collections::HashSet;
use std::sync::Arc;

use work::{Budget, OverBudget};

use super::way::{FirstStep, StepTable, TableEntry, WayStart};
use super::{UpgradeGraph, UpgradeStep, UpgradeWay, WayStop};

/// Steps of a channel, each to the first entry that updates the bundle before: those that OLM v0
/// takes, if the entries are in its order.
///
/// A way ends where nothing updates the last bundle, or before one that it has passed: a range may
/// hold the version of its own entry, and entries that update each other would be installed in
/// turn. All ways share the steps that they have in common, so each of them is found by one search.
#[derive(Debug)]
pub struct FirstSteps<'a> {
    graph: UpgradeGraph<'a>,
    entries: Arc<StepTable>,
    /// Entries outside of circles, each behind the one to which its step leads.
    order: Vec<usize>,
    /// Entries that update each other in a circle, in the order of their steps.
    circles: Vec<Vec<usize>>,
    /// Number of steps of the way from each entry.
    lengths: Vec<usize>,
    /// Last entry of the way from each entry.
    ends: Vec<usize>,
}

/// Entries of which something holds, found once for all ways.
#[derive(Debug)]
pub struct EntryHits {
    holds: Vec<bool>,
    /// First one on the way from each entry, which counts itself.
    first: Vec<Option<WayHit>>,
    /// Last one on the way from each entry, which counts itself.
    last: Vec<Option<WayHit>>,
}

/// Entry on a way of which something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WayHit {
    /// Number of steps from the start of the way to the entry.
    pub steps: usize,
    /// Number of the entry.
    pub entry: usize,
}

/// Place to which a way leads.
struct WayEnd {
    start: WayStart,
    first: Option<usize>,
    length: usize,
    /// Last entry; `None` for a start without a step that is no entry itself.
    last: Option<usize>,
}

impl<'a> FirstSteps<'a> {
    /// Finds the step from each entry of a graph, and where it leads.
    ///
    /// # Errors
    /// A budget that is used up.
    pub fn new(graph: UpgradeGraph<'a>, budget: &Budget) -> Result<Self, OverBudget> {
        let mut entries = StepTable::with_capacity(graph.entries.len());
        for entry in &graph.entries {
            budget.charge_bytes(entry.name.len())?;
            let to = graph.first_update(&entry.stop);
            entries.push(TableEntry {
                bundle: UpgradeStep::start(entry.name, entry.version),
                next: to.map(|to| FirstStep {
                    to,
                    step: graph.step(&entry.stop, to),
                }),
            });
        }
        let mut found = Self {
            order: Vec::with_capacity(entries.len()),
            circles: Vec::new(),
            lengths: vec![0; entries.len()],
            ends: (0..entries.len()).collect(),
            entries: Arc::new(entries),
            graph,
        };
        found.sort();
        found.measure();
        Ok(found)
    }

    /// Finds the circles and the order of the other entries. Passes each step once.
    fn sort(&mut self) {
        let mut is_known = vec![false; self.entries.len()];
        // Position on the way that is followed, by entry.
        let mut positions = vec![None; self.entries.len()];
        for start in 0..self.entries.len() {
            let mut way = Vec::new();
            let mut at = Some(start);
            while let Some(number) = at
                && !is_known[number]
                && positions[number].is_none()
            {
                positions[number] = Some(way.len());
                way.push(number);
                at = self.next(number);
            }
            for number in &way {
                is_known[*number] = true;
            }
            // The way may come back to one of its own entries, but not to one of a way before.
            let back = at.and_then(|number| positions[number]);
            if let Some(position) = back
                && way.get(position) == at.as_ref()
            {
                self.circles.push(way.split_off(position));
            }
            self.order.extend(way.into_iter().rev());
        }
    }

    /// Sets the length and the end of the way from each entry.
    fn measure(&mut self) {
        for circle in &self.circles {
            let mut before = circle[circle.len() - 1];
            for number in circle {
                self.lengths[*number] = circle.len() - 1;
                self.ends[*number] = before;
                before = *number;
            }
        }
        for number in &self.order {
            if let Some(next) = self.next(*number) {
                self.lengths[*number] = self.lengths[next] + 1;
                self.ends[*number] = self.ends[next];
            }
        }
    }

    fn next(&self, number: usize) -> Option<usize> {
        Some(self.entries[number].next.as_ref()?.to)
    }

    /// Returns the first entry.
    pub fn head(&self) -> Option<&'a str> {
        Some(self.graph.entries.first()?.name)
    }

    /// Returns the graph of the steps.
    pub fn graph(&self) -> &UpgradeGraph<'a> {
        &self.graph
    }

    /// Returns the way from a bundle.
    ///
    /// # Errors
    /// A budget that is used up.
    pub fn way(&self, from: &UpgradeStep, budget: &Budget) -> Result<UpgradeWay, OverBudget> {
        let stop = WayStop::of_step(from);
        let end = self.end(&stop, budget)?;
        if end.length == 0 {
            return Ok(UpgradeWay::default());
        }
        Ok(UpgradeWay {
            start: end.start,
            first: end.first.map(|to| FirstStep {
                to,
                step: self.graph.step(&stop, to),
            }),
            entries: self.entries.clone(),
            length: end.length,
            last: end.last,
        })
    }

    /// Returns true if the way from a bundle ends at the first entry.
    ///
    /// # Errors
    /// A budget that is used up.
    pub fn leads_to_head(&self, from: &UpgradeStep, budget: &Budget) -> Result<bool, OverBudget> {
        self.leads(&WayStop::of_step(from), budget)
    }

    pub(super) fn leads(&self, stop: &WayStop<'_>, budget: &Budget) -> Result<bool, OverBudget> {
        let last = self.end(stop, budget)?.last;
        // Also a channel without entries has no head.
        Ok(last == Some(0))
    }

    /// Finds the end of the way from a bundle.
    fn end(&self, stop: &WayStop<'_>, budget: &Budget) -> Result<WayEnd, OverBudget> {
        budget.charge_bytes(stop.bundle.len())?;
        let own = self.graph.numbers.get(stop.bundle).copied();
        let first = self.graph.first_update(stop);
        let Some(to) = first.filter(|first| own != Some(*first)) else {
            return Ok(WayEnd {
                start: WayStart::Outside,
                first,
                length: 0,
                last: own,
            });
        };
        let Some(own) = own else {
            return Ok(WayEnd {
                start: WayStart::Outside,
                first,
                length: self.lengths[to] + 1,
                last: Some(self.ends[to]),
            });
        };
        if self.next(own) == first {
            return Ok(WayEnd {
                start: WayStart::Entry(own),
                first,
                length: self.lengths[own],
                last: Some(self.ends[own]),
            });
        }
        // The installed version is another one than in the catalog, and the way may come back.
        let mut passed = HashSet::from([own, to]);
        let mut last = to;
        while let Some(next) = self.next(last)
            && passed.insert(next)
        {
            budget.charge(1)?;
            last = next;
        }
        Ok(WayEnd {
            start: WayStart::OtherVersion,
            first,
            length: passed.len() - 1,
            last: Some(last),
        })
    }

    /// Finds the entries on each way of which something holds.
    pub fn hits(&self, holds: Vec<bool>) -> EntryHits {
        let mut hits = EntryHits {
            first: vec![None; holds.len()],
            last: vec![None; holds.len()],
            holds,
        };
        for circle in &self.circles {
            hits.add_circle(circle);
        }
        for number in &self.order {
            let next = self.next(*number);
            hits.add(*number, next);
        }
        hits
    }
}

impl EntryHits {
    /// Adds an entry, behind the one to which its step leads.
    fn add(&mut self, number: usize, next: Option<usize>) {
        let own = WayHit {
            steps: 0,
            entry: number,
        };
        let own = self.holds[number].then_some(own);
        self.first[number] = own.or_else(|| self.first[next?].map(WayHit::behind_a_step));
        let last = next.and_then(|next| self.last[next]);
        self.last[number] = last.map(WayHit::behind_a_step).or(own);
    }

    /// Adds the entries of a circle. The way from one ends before it comes back.
    fn add_circle(&mut self, circle: &[usize]) {
        let size = circle.len();
        let hit = |place: usize, start: usize| WayHit {
            steps: place - start,
            entry: circle[place % size],
        };
        let mut following = None;
        for place in (0..2 * size).rev() {
            if self.holds[circle[place % size]] {
                following = Some(place);
            }
            if place < size {
                let first = following.filter(|found| *found < place + size);
                self.first[circle[place]] = first.map(|found| hit(found, place));
            }
        }
        let mut before = None;
        for place in 0..2 * size - 1 {
            if self.holds[circle[place % size]] {
                before = Some(place);
            }
            if let Some(start) = (place + 1).checked_sub(size) {
                let last = before.filter(|found| *found >= start);
                self.last[circle[start]] = last.map(|found| hit(found, start));
            }
        }
    }

    /// Returns the first entry on a way of which it holds. The way must be one of the same steps.
    pub fn first_on(&self, way: &UpgradeWay) -> Option<WayHit> {
        let to = way.first.as_ref()?.to;
        match way.start {
            WayStart::OtherVersion => self.asked_one_by_one(way).next(),
            WayStart::Outside | WayStart::Entry(_) => self.first[to]
                .map(WayHit::behind_a_step)
                .filter(|hit| hit.steps <= way.length),
        }
    }

    /// Returns the last entry on a way of which it holds. The way must be one of the same steps.
    pub fn last_on(&self, way: &UpgradeWay) -> Option<WayHit> {
        let to = way.first.as_ref()?.to;
        match way.start {
            WayStart::OtherVersion => self.asked_one_by_one(way).last(),
            WayStart::Outside => self.last[to].map(WayHit::behind_a_step),
            WayStart::Entry(own) => self.last[own].filter(|hit| hit.steps > 0),
        }
    }

    fn asked_one_by_one(&self, way: &UpgradeWay) -> impl Iterator<Item = WayHit> {
        way.entries()
            .enumerate()
            .filter(|(_, entry)| self.holds[*entry])
            .map(|(at, entry)| WayHit {
                steps: at + 1,
                entry,
            })
    }
}

impl WayHit {
    fn behind_a_step(self) -> Self {
        Self {
            steps: self.steps + 1,
            ..self
        }
    }
}
