//! Order of the polls of one round: a composition comes after its inputs.

use std::collections::BTreeMap;

use model::CatalogName;
use tokio_util::sync::CancellationToken;

use crate::Catalog;

/// Order of the polls of some catalogs.
#[derive(Debug, Default)]
pub struct PollOrder {
    catalogs: BTreeMap<CatalogName, PlacedPoll>,
}

#[derive(Debug, Default)]
struct PlacedPoll {
    /// Inputs that are polled in the same round.
    inputs: Vec<CatalogName>,
    level: usize,
    ended: CancellationToken,
}

impl PollOrder {
    /// Orders the polls of these catalogs. Inputs that are not among them are not waited for.
    pub fn new<'a>(catalogs: impl IntoIterator<Item = &'a Catalog>) -> Self {
        let mut order = Self::default();
        for catalog in catalogs {
            let placed = order.catalogs.entry(catalog.name.clone()).or_default();
            placed.inputs = catalog.source.inputs().cloned().collect();
        }
        order.set_levels();
        order
    }

    /// Returns the level above the inputs of a catalog.
    fn level_above(&self, placed: &PlacedPoll) -> usize {
        let inputs = placed.inputs.iter();
        let levels = inputs.filter_map(|input| Some(self.catalogs.get(input)?.level + 1));
        levels.max().unwrap_or(0)
    }

    fn set_levels(&mut self) {
        // Each pass completes one level. A cycle, which configuration refuses, ends with the last
        // pass.
        for _ in 0..self.catalogs.len() {
            let levels: Vec<usize> = self
                .catalogs
                .values()
                .map(|placed| self.level_above(placed))
                .collect();
            let before: Vec<usize> = self.catalogs.values().map(|placed| placed.level).collect();
            if levels == before {
                return;
            }
            for (placed, level) in self.catalogs.values_mut().zip(levels) {
                placed.level = level;
            }
        }
    }

    /// Returns the length of the longest chain of compositions below a catalog: 0 for one that is
    /// no composition.
    pub fn level(&self, catalog: &CatalogName) -> usize {
        self.catalogs.get(catalog).map_or(0, |placed| placed.level)
    }

    /// Returns the compositions that have `input` as an input.
    pub fn followers<'a>(
        &'a self,
        input: &'a CatalogName,
    ) -> impl Iterator<Item = &'a CatalogName> {
        let followers = self
            .catalogs
            .iter()
            .filter(|(_, placed)| placed.inputs.contains(input));
        followers.map(|(name, _)| name)
    }

    /// Waits until the inputs of a catalog were polled.
    pub(crate) async fn wait(&self, catalog: &CatalogName) {
        let inputs = self
            .catalogs
            .get(catalog)
            .into_iter()
            .flat_map(|placed| &placed.inputs);
        for input in inputs {
            if let Some(input) = self.catalogs.get(input) {
                input.ended.cancelled().await;
            }
        }
    }

    /// Ends the wait for a catalog.
    pub(crate) fn end(&self, catalog: &CatalogName) {
        if let Some(placed) = self.catalogs.get(catalog) {
            placed.ended.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use compose::{Composition, CompositionInput};
    use source::Source;

    use super::*;
    use crate::{CatalogSource, ComposedSource};

    fn catalog(name: &str, inputs: &[&str]) -> Catalog {
        let name: CatalogName = name.parse().unwrap();
        if inputs.is_empty() {
            return Catalog::new(name, Source::Dir("x".into()));
        }
        let input = |text: &&str| CompositionInput {
            catalog: Some((*text).to_owned()),
            ..CompositionInput::default()
        };
        let composition = Composition {
            inputs: inputs.iter().map(input).collect(),
            ..Composition::default()
        };
        let composed = ComposedSource::new(composition, Path::new("")).unwrap();
        Catalog::new(name, CatalogSource::Composed(Box::new(composed)))
    }

    fn order() -> PollOrder {
        PollOrder::new(&[
            catalog("a", &["b", "z"]),
            catalog("b", &["c"]),
            catalog("c", &[]),
            catalog("d", &["c", "a"]),
        ])
    }

    #[test]
    fn levels_follow_the_longest_chain() {
        let order = order();
        let levels = ["a", "b", "c", "d", "z"].map(|name| order.level(&name.parse().unwrap()));
        assert_eq!(levels, [2, 1, 0, 3, 0]);
        let input = "c".parse().unwrap();
        let followers: Vec<&str> = order.followers(&input).map(CatalogName::as_str).collect();
        assert_eq!(followers, ["b", "d"]);
    }

    #[tokio::test]
    async fn composition_waits_for_each_input_of_the_round() {
        let order = order();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| name.parse::<CatalogName>().unwrap());
        let is_ready = |name| futures_util::FutureExt::now_or_never(order.wait(name)).is_some();
        let ready = [&c, &b, &a].map(|ended| {
            order.end(ended);
            [&a, &d].map(is_ready)
        });
        assert_eq!(ready, [[false, false], [true, false], [true, true]]);
    }
}
