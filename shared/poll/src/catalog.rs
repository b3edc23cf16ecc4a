use std::time::Duration;

use image::{Lookaside, Source};
use layout::{Availability, CatalogName};
use policy::Policy;

/// A configured catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// Its name.
    pub name: CatalogName,
    /// Where it comes from.
    pub source: Source,
    /// Whether readers serve it.
    pub availability: Availability,
    /// How often its source is looked at; never again after the first time without one.
    pub interval: Option<Duration>,
    /// What the signatures of its image have to be; none is asked for without.
    pub policy: Option<Policy>,
    /// Where its simple signatures are, if the policy asks for some.
    pub lookaside: Option<Lookaside>,
}

impl Catalog {
    /// How often the catalog is polled: a pinned digest never changes.
    pub fn poll_interval(&self) -> Option<Duration> {
        self.interval.filter(|_| self.source.pinned().is_none())
    }
}
