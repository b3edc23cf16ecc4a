//! Catalogs with the places where they are configured.

use std::collections::BTreeMap;

use model::CatalogName;
use publish::Catalog;

use super::hold::OwnHold;
use super::keys::PlacedRule;
use super::limits::OwnLimit;
use crate::problems::Problems;

/// A catalog and the place where it is configured, for problems.
pub(crate) struct PlacedCatalog {
    pub(crate) place: String,
    pub(crate) catalog: Catalog,
    /// Limits that the catalog sets itself, which win over those of all.
    pub(crate) limits: Vec<OwnLimit>,
    /// Rule for its signatures.
    pub(crate) signature: Option<PlacedRule>,
    /// Rules that hold its content back, which win over those of all.
    pub(crate) hold: OwnHold,
}

impl PlacedCatalog {
    /// Returns a catalog without limits and rules of its own.
    pub(crate) fn new(place: &str, catalog: Catalog) -> Self {
        Self {
            place: place.to_owned(),
            catalog,
            limits: Vec::new(),
            signature: None,
            hold: OwnHold::default(),
        }
    }
}

/// Refuses sources that are paths.
pub(crate) fn refuse_paths(catalogs: &[PlacedCatalog], problems: &Problems) {
    for PlacedCatalog { place, catalog, .. } in catalogs {
        for pulled in catalog.source.pulled_sources() {
            let source = &pulled.source;
            if source.local_path().is_some() {
                let problem = format!(
                    "the source {source} is a path, not an image in a registry or an archive"
                );
                problems.add(place, problem);
            }
        }
    }
}

/// Returns the catalogs in the order of their names. A name that occurs again is a problem.
pub(crate) fn unique(catalogs: Vec<PlacedCatalog>, problems: &Problems) -> Vec<PlacedCatalog> {
    let mut by_name: BTreeMap<CatalogName, PlacedCatalog> = BTreeMap::new();
    for placed in catalogs {
        let name = placed.catalog.name.clone();
        if let Some(first) = by_name.get(&name) {
            let problem = format!(
                "the catalog {name} is configured in {} already",
                first.place
            );
            problems.add(&placed.place, problem);
        } else {
            by_name.insert(name, placed);
        }
    }
    by_name.into_values().collect()
}
