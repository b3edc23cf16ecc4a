use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{CatalogName, Document};

/// `catalogs.json`: the names of all catalogs of a store, in byte order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogs {
    /// The names.
    pub catalogs: BTreeSet<CatalogName>,
}

impl Document for Catalogs {
    const KIND: &'static str = "catalogs.json";
}

impl FromIterator<CatalogName> for Catalogs {
    fn from_iter<I: IntoIterator<Item = CatalogName>>(names: I) -> Self {
        Self {
            catalogs: names.into_iter().collect(),
        }
    }
}
