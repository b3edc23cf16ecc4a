use std::error::Error;

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

/// Catalog with the name by which messages call it.
pub struct NamedCatalog<'a> {
    /// Name for messages.
    pub name: String,
    /// Content of the catalog.
    pub packages: &'a mut dyn PackageSource,
}

/// Opens a package of an input.
pub(crate) fn read(catalog: &mut NamedCatalog<'_>, package: &str) -> Result<PackageLines<'static>, ComposeError> {
    let lines = catalog.packages.read(package);
    lines.map_err(unreadable(catalog, package))
}

/// Reads a package of an input into memory.
pub(crate) fn read_bytes(catalog: &mut NamedCatalog<'_>, package: &str) -> Result<Vec<u8>, ComposeError> {
    let lines = read(catalog, package)?.into_bytes();
    lines.map_err(unreadable(catalog, package))
}

/// Returns what makes an error of reading a package of an input.
pub(crate) fn unreadable<E: Into<ReadError>>(
    catalog: &NamedCatalog<'_>,
    package: &str,
) -> impl FnOnce(E) -> ComposeError {
    let (input, package) = (catalog.name.clone(), package.to_owned());
    move |source| ComposeError::Read {
        input,
        package,
        source: source.into(),
    }
}
