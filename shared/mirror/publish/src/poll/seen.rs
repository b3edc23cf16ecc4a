//! Days of bundles of earlier states and of other catalogs. They are kept over publications.

use std::collections::BTreeSet;

use model::{Facts, SeenPackage, Snapshot};
use olm::{Day, PackageBundles, first_days};
use store::{Store, read_usable};

use crate::{PublishError, Transaction};

/// Documents of days of earlier states and of other catalogs.
pub(super) struct SeenBefore {
    known: Vec<Facts<SeenPackage>>,
    today: Day,
}

impl SeenBefore {
    /// Reads the days of the published state, of the inputs of a composition, and after a rollback
    /// those of all states that are kept: the published one is then older than they are.
    pub(super) async fn read<'s>(
        store: &dyn Store,
        transaction: &'s Transaction,
        inputs: impl Iterator<Item = &'s Snapshot>,
        today: Day,
    ) -> Result<Self, PublishError> {
        let base = transaction.base_snapshot().await?;
        let mut objects: BTreeSet<_> = base
            .into_iter()
            .chain(inputs)
            .filter_map(|snapshot| snapshot.facts.get(SeenPackage::KIND).copied())
            .collect();
        if let Some(current) = transaction.base()
            && current.rolled_back.is_some()
        {
            for previous in &current.previous {
                let snapshot = read_usable::<Snapshot>(store, &previous.snapshot.digest).await?;
                let seen = snapshot.and_then(|found| found.facts.get(SeenPackage::KIND).copied());
                objects.extend(seen);
            }
        }
        let mut known = Vec::new();
        for object in objects {
            known.extend(read_usable(store, &object).await?);
        }
        Ok(Self { known, today })
    }

    /// Returns the days of the bundles of new content.
    pub(super) fn days<'a>(
        self,
        content: impl Iterator<Item = PackageBundles<'a>>,
    ) -> Facts<SeenPackage> {
        first_days(self.known, self.today, content)
    }
}
