use std::{collections::BTreeSet, error::Error};

use crate::{ComposeError, PackageLines};

/// Error of the storage that holds a catalog.
pub type ReadError = Box<dyn Error + Send + Sync>;

/// Packages of one catalog, read one by one.
pub trait PackageSource {
    /// Returns the names of all packages; the empty name stands for the documents without a package.
    fn packages(&self) -> Vec<String>;

    /// Returns the canonical lines of one of these packages.
    ///
    /// # Errors
    /// Fails if the lines cannot be read, or are not those that were published.
    fn read(&mut self, package: &str) -> Result<PackageLines<'static>, ReadError>;
}

/// Catalog with the name by which messages call it: the text of the composition.
pub(crate) struct NamedCatalog<'a, C> {
    pub(crate) name: &'a str,
    pub(crate) packages: BTreeSet<String>,
    catalog: &'a mut C,
}

impl<'a, C: PackageSource> NamedCatalog<'a, C> {
    pub(crate) fn new(name: &'a str, catalog: &'a mut C) -> Self {
        Self {
            name,
            packages: catalog.packages().into_iter().collect(),
            catalog,
        }
    }

    /// Opens a package.
    pub(crate) fn read(&mut self, package: &str) -> Result<PackageLines<'static>, ComposeError> {
        let lines = self.catalog.read(package);
        lines.map_err(|source| self.unreadable(package, source))
    }

    /// Reads a package into memory.
    pub(crate) fn read_bytes(&mut self, package: &str) -> Result<Vec<u8>, ComposeError> {
        let lines = self.read(package)?.into_bytes();
        lines.map_err(|source| self.unreadable(package, source))
    }

    /// Returns the error of reading a package.
    pub(crate) fn unreadable(&self, package: &str, source: impl Into<ReadError>) -> ComposeError {
        ComposeError::Read {
            input: self.name.to_owned(),
            package: package.to_owned(),
            source: source.into(),
        }
    }
}
