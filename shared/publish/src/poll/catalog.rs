use std::time::Duration;

use model::{Availability, CatalogName};
use source::Lookaside;
use trust::policy::Policy;

use super::{CatalogSource, SourceLimits, ValidationMode};

/// Catalog as it is configured: name, source, schedule and policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// Name of the catalog, under which the store and the routes have it.
    pub name: CatalogName,
    /// Source that the FBC is read from, or composition.
    pub source: CatalogSource,
    /// Availability to readers, published with the next poll. Default: available.
    pub availability: Availability,
    /// Time between two polls. Without one, the catalog is polled once.
    pub interval: Option<Duration>,
    /// Policy for the signatures of its image. Without one, none is asked for. What a composition pulls has policies of its own.
    pub policy: Option<Policy>,
    /// Location of its simple signatures, if the policy asks for some.
    pub lookaside: Option<Lookaside>,
    /// Limits of its source, in place of those of the mirror. `memory_bytes` is not used: the mirror's is for all catalogs.
    pub limits: Option<SourceLimits>,
    /// Treatment of content that violates the rules of OLM. Default: it is published and the findings are named; a composition is
    /// refused.
    pub validation: ValidationMode,
}

impl Catalog {
    /// Returns an available catalog that is polled once, without a policy and with the limits of the mirror.
    pub fn new(name: CatalogName, source: impl Into<CatalogSource>) -> Self {
        let source = source.into();
        Self {
            name,
            // What is composed here can be corrected here; a foreign catalog cannot.
            validation: match source {
                CatalogSource::Pulled(_) => ValidationMode::Warn,
                CatalogSource::Composed(_) => ValidationMode::Refuse,
            },
            source,
            availability: Availability::Available,
            interval: None,
            policy: None,
            lookaside: None,
            limits: None,
        }
    }

    /// Returns the catalogs whose sources are pulled: this one, or what its composition pulls.
    pub fn pulled_mut(&mut self) -> Vec<&mut Self> {
        // A second borrow in the other arm would outlive this one.
        if self.source.composed().is_none() {
            return vec![self];
        }
        match &mut self.source {
            CatalogSource::Pulled(_) => Vec::new(),
            CatalogSource::Composed(composed) => composed.pulled_mut().collect(),
        }
    }

    /// Returns the time between two polls. A pinned digest never changes, so it has none.
    pub fn poll_interval(&self) -> Option<Duration> {
        self.interval.filter(|_| self.source.pinned().is_none())
    }
}
