//! Fewest steps from one bundle to the entries of a channel.

use std::collections::VecDeque;

use work::{Budget, OverBudget};

use super::{UpgradeGraph, UpgradeStep, WayStop};

/// Fewest steps from one bundle to each entry of a channel to which a way leads.
///
/// Of several ways it is the one whose first steps lead to the newest versions.
#[derive(Debug)]
pub struct FewestSteps<'g, 'a> {
    graph: &'g UpgradeGraph<'a>,
    start: WayStop<'g>,
    /// Ways by the number of the entry to which they lead.
    reached: Vec<Reached>,
}

/// Last step of a way to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Never,
    FromStart,
    From(usize),
}

impl<'g, 'a> FewestSteps<'g, 'a> {
    /// Walks the graph once. Each range is left out as soon as its entry is reached.
    pub(super) fn new(
        graph: &'g UpgradeGraph<'a>,
        start: &'g UpgradeStep,
        budget: &Budget,
    ) -> Result<Self, OverBudget> {
        let mut steps = Self {
            graph,
            start: WayStop::of_step(start),
            reached: vec![Reached::Never; graph.entries.len()],
        };
        let own = graph.numbers.get(&*start.bundle);
        let mut ranged: Vec<&[usize]> = graph.ranges.nodes().iter().map(Vec::as_slice).collect();
        let mut open = VecDeque::from([Reached::FromStart]);
        while let Some(from) = open.pop_front() {
            let stop = match from {
                Reached::From(number) => &graph.entries[number].stop,
                _ => &steps.start,
            };
            let named = graph.updating.get(stop.bundle);
            let mut found = named.cloned().unwrap_or_default();
            if let Some(version) = &stop.version {
                for node in graph.ranges.path(version) {
                    found.extend_from_slice(ranged[node]);
                    ranged[node] = &[];
                }
            }
            budget.charge(1 + found.len() as u64)?;
            found.sort_unstable();
            for number in found {
                if Some(&number) != own && steps.reached[number] == Reached::Never {
                    steps.reached[number] = from;
                    open.push_back(Reached::From(number));
                }
            }
        }
        Ok(steps)
    }

    /// Returns true if an entry updates the start.
    pub fn is_any(&self) -> bool {
        self.reached.contains(&Reached::FromStart)
    }

    /// Returns the steps to an entry, without the start. `None` if no way leads there.
    pub fn to(&self, bundle: &str) -> Option<Vec<UpgradeStep>> {
        if bundle == self.start.bundle {
            return Some(Vec::new());
        }
        let mut at = *self.graph.numbers.get(bundle)?;
        let mut way = Vec::new();
        loop {
            match self.reached[at] {
                Reached::Never => return None,
                Reached::FromStart => {
                    way.push(self.graph.step(&self.start, at));
                    break;
                }
                Reached::From(before) => {
                    way.push(self.graph.step(&self.graph.entries[before].stop, at));
                    at = before;
                }
            }
        }
        way.reverse();
        Some(way)
    }
}
