//! Lines of packages: read from the inputs, and passed to the receiver.

use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};

use work::Budget;

use crate::{ComposeError, ReadError};

/// Size of one read, in bytes.
const BLOCK: usize = 64 << 10;

/// Bytes that can be read several times.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// Packages of one catalog, read one by one.
pub trait PackageSource {
    /// Returns the text by which messages call the catalog: that of the composition.
    fn name(&self) -> &str;

    /// Returns the names of all packages; the empty name stands for the documents without a
    /// package.
    fn packages(&self) -> Vec<String>;

    /// Returns true if the catalog has this package.
    fn has(&self, package: &str) -> bool;

    /// Returns the canonical lines of one of these packages, which are read from their start,
    /// whatever was read before. They are in memory or in a file, because a package may have
    /// hundreds of megabytes.
    ///
    /// # Errors
    /// Fails if the lines cannot be read, or are not those that were published.
    fn read(&mut self, package: &str) -> Result<Box<dyn ReadSeek>, ReadError>;
}

/// Receiver of the packages of a composed catalog: the documents without a package first, then the
/// packages in byte order, and after them those of
/// [`DependencyRule::Include`](crate::DependencyRule::Include), in byte order too. The name of the
/// documents without a package is empty.
pub type PackageSink<'a> = dyn FnMut(&str, ComposedContent<'_>) -> Result<(), ReadError> + 'a;

/// Lines of a composed package.
pub enum ComposedContent<'a> {
    /// All lines of an input, whose shard can be used again.
    Shard {
        /// Number of the input; the first is 0.
        input: usize,
    },
    /// New lines in canonical form, made while they are read. One line is held at a time.
    Lines(&'a mut dyn Read),
}

/// Reader of the lines of one package, within a budget.
pub(crate) struct PackageReader {
    input: String,
    package: String,
    lines: BufReader<Box<dyn ReadSeek>>,
    budget: Budget,
}

impl PackageReader {
    /// Creates a reader of a package without lines.
    pub(crate) fn empty(package: &str, budget: &Budget) -> Self {
        Self {
            input: String::new(),
            package: package.to_owned(),
            lines: BufReader::with_capacity(0, Box::new(io::empty())),
            budget: budget.clone(),
        }
    }

    /// Opens a package of a catalog.
    pub(crate) fn open(
        catalog: &mut impl PackageSource,
        package: &str,
        budget: &Budget,
    ) -> Result<Self, ComposeError> {
        budget.charge(1)?;
        let mut reader = Self::empty(package, budget);
        catalog.name().clone_into(&mut reader.input);
        let lines = catalog.read(package);
        let lines = lines.map_err(|error| reader.unreadable(error))?;
        reader.lines = BufReader::with_capacity(BLOCK, lines);
        Ok(reader)
    }

    /// Starts again at the first line.
    pub(crate) fn rewind(&mut self) -> Result<(), ComposeError> {
        self.lines.rewind().map_err(|error| self.unreadable(error))
    }

    /// Returns the next line, with its `\n`.
    pub(crate) fn next_line(&mut self) -> Result<Option<Vec<u8>>, ComposeError> {
        let mut line = Vec::new();
        let read = self
            .lines
            .read_until(b'\n', &mut line)
            .map_err(|error| self.unreadable(error))?;
        self.budget.charge_bytes(read)?;
        if line.is_empty() {
            return Ok(None);
        }
        Ok(Some(line))
    }

    /// Passes each line to `each`.
    pub(crate) fn for_each(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), ComposeError>,
    ) -> Result<(), ComposeError> {
        self.rewind()?;
        while let Some(line) = self.next_line()? {
            each(&line)?;
        }
        Ok(())
    }

    /// Returns the error of a selection in this package.
    pub(crate) fn select_error(&self, problem: &str) -> ComposeError {
        ComposeError::Refused(format!("input {}: {problem}", self.input))
    }

    fn unreadable(&self, source: impl Into<ReadError>) -> ComposeError {
        ComposeError::Read {
            input: self.input.clone(),
            package: self.package.clone(),
            source: source.into(),
        }
    }
}

/// Supplier of lines; `None` behind the last one.
pub(crate) type NextLine<'a> = dyn FnMut() -> Result<Option<Vec<u8>>, ComposeError> + 'a;

/// Passes lines to the receiver as it reads them. Those that it leaves are made too, for what they
/// require.
pub(crate) fn push_lines(
    sink: &mut PackageSink<'_>,
    name: &str,
    next: &mut NextLine<'_>,
) -> Result<(), ComposeError> {
    let mut lines = LineReader {
        next,
        line: Cursor::default(),
        failure: None,
    };
    let pushed = sink(name, ComposedContent::Lines(&mut lines));
    if let Some(error) = lines.failure {
        return Err(error);
    }
    pushed.map_err(ComposeError::Sink)?;
    while next()?.is_some() {}
    Ok(())
}

struct LineReader<'a, 'n> {
    next: &'a mut NextLine<'n>,
    line: Cursor<Vec<u8>>,
    /// Error of a line. The receiver has another in its place.
    failure: Option<ComposeError>,
}

impl Read for LineReader<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.line.read(buffer)?;
        if read > 0 {
            return Ok(read);
        }
        match (self.next)() {
            Ok(None) => Ok(0),
            Ok(Some(line)) => {
                self.line = Cursor::new(line);
                self.line.read(buffer)
            }
            Err(error) => {
                self.failure = Some(error);
                Err(io::Error::other("a line cannot be composed"))
            }
        }
    }
}
