//! Content that is held back: the settings of a catalog, and the release by a person.

use std::collections::BTreeSet;
use std::time::Duration;

use ::hold::{HoldRule, InstalledVersion};
use model::{CatalogName, RejectedRevision};
use store::{Store, StoreError};

use crate::{CatalogSource, InputPlace, status::update_status};

/// Time for which content is held by default: a vendor notices and corrects an accident in it.
const HOLD_TIME: Duration = Duration::from_hours(3 * 24);

/// Rules by which new content of a catalog is held back, and the time for which it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldSettings {
    /// Rules that are chosen for the catalog. Default: [`HoldRule::DEFAULT`], and none for a
    /// composition of published catalogs alone, whose content was judged there.
    pub rules: Option<BTreeSet<HoldRule>>,
    /// Versions for [`HoldRule::Installed`].
    pub installed: Vec<InstalledVersion>,
    /// Time after which held content is published all the same; `None` if only a person decides.
    /// Default: three days.
    pub time: Option<Duration>,
}

impl Default for HoldSettings {
    fn default() -> Self {
        Self {
            rules: None,
            installed: Vec::new(),
            time: Some(HOLD_TIME),
        }
    }
}

impl HoldSettings {
    /// Returns the rules for a catalog of this source.
    pub(crate) fn rules_for(&self, source: &CatalogSource) -> BTreeSet<HoldRule> {
        // The catalog that a ring follows was judged.
        if source.ring().is_some() {
            return BTreeSet::new();
        }
        if let Some(rules) = &self.rules {
            return rules.clone();
        }
        let is_judged = source.composed().is_some_and(|composed| {
            let mut inputs = composed.inputs.iter();
            inputs.all(|input| matches!(input.place, InputPlace::Published { .. }))
        });
        if is_judged {
            return BTreeSet::new();
        }
        HoldRule::DEFAULT.into()
    }
}

/// Lets the revision of a catalog through that is held back: the next poll publishes it, if the
/// source still has it. Returns the revision, or `None` if none is held.
///
/// # Errors
/// The error of the store.
pub async fn release(
    store: &dyn Store,
    catalog: &CatalogName,
) -> Result<Option<RejectedRevision>, StoreError> {
    let mut released = None;
    let written = update_status(store, catalog, |before| {
        let mut next = before?.clone();
        let rejected = next.rejected.as_mut()?;
        rejected.held.as_mut()?.released = true;
        released = Some(rejected.clone());
        Some(next)
    });
    written.await?;
    Ok(released)
}
