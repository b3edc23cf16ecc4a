//! Many starts of ways, asked about all at once.

use std::collections::HashMap;

use work::{Budget, OverBudget};

use super::{FirstSteps, UpgradeStep, WayStop};
use crate::version::VersionPlace;

/// Bundles from which ways may start, to ask about all of them at once.
#[derive(Debug)]
pub struct UpgradeStarts<'s> {
    stops: Vec<WayStop<'s>>,
    /// Numbers of the bundles by their name.
    named: HashMap<&'s str, usize>,
    /// Numbers of the bundles that have a version, in the order of versions.
    sorted: Vec<usize>,
}

impl<'s> UpgradeStarts<'s> {
    /// Sorts bundles by their versions.
    pub fn new(bundles: impl IntoIterator<Item = &'s UpgradeStep>) -> Self {
        let stops: Vec<WayStop<'_>> = bundles.into_iter().map(WayStop::of_step).collect();
        let mut sorted: Vec<usize> = (0..stops.len())
            .filter(|number| stops[*number].version.is_some())
            .collect();
        sorted.sort_by(|one, other| stops[*one].version.cmp(&stops[*other].version));
        Self {
            named: stops
                .iter()
                .enumerate()
                .map(|(number, stop)| (stop.bundle, number))
                .collect(),
            sorted,
            stops,
        }
    }

    /// Returns true if one of the ways from these bundles ends at the first entry of a channel.
    /// Takes steps in proportion to the channel, and not to the number of bundles.
    ///
    /// # Errors
    /// A budget that is used up.
    pub fn any_leads_to_head(
        &self,
        steps: &FirstSteps<'_>,
        budget: &Budget,
    ) -> Result<bool, OverBudget> {
        let graph = steps.graph();
        for entry in &graph.entries {
            for name in entry.entry.updated().chain([entry.name]) {
                budget.charge(1)?;
                if let Some(number) = self.named.get(name)
                    && steps.leads(&self.stops[*number], budget)?
                {
                    return Ok(true);
                }
            }
        }
        // A bundle that the channel does not name is updated by ranges alone, so all of them between
        // two places have the same way.
        for gap in graph.ranges.places().windows(2) {
            budget.charge(1)?;
            let start = self.first_behind(&gap[0]);
            let end = self.first_behind(&gap[1]);
            let unnamed = self.sorted[start..end]
                .iter()
                .map(|number| &self.stops[*number])
                .find(|stop| !graph.names(stop.bundle));
            if let Some(stop) = unnamed
                && steps.leads(stop, budget)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the position of the first version behind a place.
    fn first_behind(&self, place: &VersionPlace) -> usize {
        self.sorted.partition_point(|number| {
            let version = self.stops[*number].version.as_ref();
            !version.is_some_and(|version| place.is_before(version))
        })
    }
}
