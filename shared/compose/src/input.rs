use std::{
    collections::BTreeSet,
    error::Error,
    io::{self, BufRead, BufReader, Cursor, Read, Seek},
};

use olm::{Package, PackageParser};

use crate::ComposeError;

/// Size of one read, in bytes.
const BLOCK: usize = 64 << 10;

/// Bytes that can be read several times.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// Canonical lines of one package. They are in memory or in a file, because a package may have hundreds of megabytes.
pub struct PackageLines<'a>(Box<dyn ReadSeek + 'a>);

impl<'a> PackageLines<'a> {
    /// Wraps lines that can be read from their start, whatever was read before.
    pub fn new(lines: impl ReadSeek + 'a) -> Self {
        Self(Box::new(lines))
    }

    /// Passes each line, with its `\n`, to `each`.
    pub(crate) fn for_each<E: From<io::Error>>(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.0.rewind()?;
        let mut reader = BufReader::with_capacity(BLOCK, &mut self.0);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            each(&line)?;
            line.clear();
        }
        Ok(())
    }

    pub(crate) fn parse(&mut self) -> io::Result<Package> {
        self.0.rewind()?;
        let mut parser = PackageParser::default();
        let mut block = vec![0; BLOCK];
        loop {
            match self.0.read(&mut block)? {
                0 => return Ok(parser.finish()),
                length => parser.push(&block[..length]),
            }
        }
    }

    pub(crate) fn into_bytes(mut self) -> io::Result<Vec<u8>> {
        self.0.rewind()?;
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Read for PackageLines<'_> {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        self.0.read(block)
    }
}

impl<'a> From<&'a [u8]> for PackageLines<'a> {
    fn from(lines: &'a [u8]) -> Self {
        Self::new(Cursor::new(lines))
    }
}

impl From<Vec<u8>> for PackageLines<'_> {
    fn from(lines: Vec<u8>) -> Self {
        Self::new(Cursor::new(lines))
    }
}

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
