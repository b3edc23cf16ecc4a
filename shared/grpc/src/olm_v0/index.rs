use std::{collections::BTreeMap, sync::Arc};

use model::Sha256;

use super::record::PackageRecord;

/// Records of all Packages of a state. Those of lines that an earlier state has too are shared with its index.
#[derive(Debug, Default)]
pub struct ApiIndex {
    records: BTreeMap<String, Arc<PackageRecord>>,
    /// Memory that all records take, in bytes.
    memory: usize,
}

impl ApiIndex {
    /// Adds the record of a Package.
    pub fn insert(&mut self, record: Arc<PackageRecord>) {
        self.memory += record.memory;
        self.records.insert(record.name.clone(), record);
    }

    /// Returns the memory that all records take, in bytes.
    pub const fn memory(&self) -> usize {
        self.memory
    }

    /// Returns the record with this name, which the global group and Packages without `olm.package` have too.
    pub fn record(&self, name: &str) -> Option<&Arc<PackageRecord>> {
        self.records.get(name)
    }

    /// Returns the record of the Package if it was made of these lines.
    pub fn record_of(&self, name: &str, lines: Sha256) -> Option<&Arc<PackageRecord>> {
        self.record(name).filter(|record| record.lines == lines)
    }

    /// Returns the records of Packages that have an `olm.package`, by name.
    pub fn packages(&self) -> impl Iterator<Item = &Arc<PackageRecord>> {
        let records = self.records.values();
        records.filter(|record| record.package_line.is_some())
    }
}
