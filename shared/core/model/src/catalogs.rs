use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{CatalogName, Document};

/// `catalogs.json`: the names of all catalogs of a store, in byte order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogs {
    /// Grows by one with each change, so that no two states have the same bytes: a write for an
    /// earlier state that arrives late or twice is never taken for one of a later state with the
    /// same names.
    pub serial: u64,
    /// Names of all catalogs that have a pointer, in byte order.
    pub catalogs: BTreeSet<CatalogName>,
}

impl Catalogs {
    /// Adds a name. Returns true if it was absent.
    pub fn add(&mut self, name: &CatalogName) -> bool {
        let is_new = self.catalogs.insert(name.clone());
        if is_new {
            self.serial = self.serial.saturating_add(1);
        }
        is_new
    }

    /// Removes a name. Returns true if it was present.
    pub fn remove(&mut self, name: &CatalogName) -> bool {
        let was_there = self.catalogs.remove(name);
        if was_there {
            self.serial = self.serial.saturating_add(1);
        }
        was_there
    }
}

impl Document for Catalogs {
    const NAME: &'static str = "catalogs.json";
}

impl FromIterator<CatalogName> for Catalogs {
    fn from_iter<I: IntoIterator<Item = CatalogName>>(names: I) -> Self {
        Self {
            serial: 0,
            catalogs: names.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_grows_with_each_change_and_names_alone_do_not_identify_a_state() {
        let name: CatalogName = "a".parse().unwrap();
        let older =
            Catalogs::from_bytes(br#"{"formatVersion":3,"serial":0,"catalogs":["a"]}"#).unwrap();
        let mut catalogs = older.clone();
        assert!(!catalogs.add(&name));
        assert_eq!(catalogs, older);
        assert!(catalogs.remove(&name) && !catalogs.remove(&name) && catalogs.add(&name));
        assert_eq!(catalogs.catalogs, older.catalogs);
        assert_ne!(catalogs.to_bytes(), older.to_bytes());
    }
}
