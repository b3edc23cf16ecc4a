//! A tar archive, entry by entry, as Go's `archive/tar` reads it.
//!
//! By hand, because readers disagree about hostile archives: which of two PAX records counts, where one ends that holds a
//! line feed, whether a link has content. Container engines and catalogd are written in Go, so an image must mean here
//! what it means there, and what no engine can be expected to read alike is refused. Formats: POSIX.1-2017 `pax` and
//! `ustar`, and the long names of GNU tar.

mod header;
mod pax;
#[cfg(test)]
mod tests;

use std::io::{self, Read};

use header::{BLOCK_BYTES, Header};
use pax::Extras;

/// Reads entries from a stream that is never sought.
pub(crate) struct Archive<R> {
    reader: R,
    header_bytes: u64,
    /// Content of the last entry that was not read yet, and what fills its last block.
    left: u64,
    padding: u64,
    /// Entries so far.
    count: u64,
    ended: bool,
}

/// An entry, everything that describes it being applied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) path: Vec<u8>,
    /// Empty if it is no link.
    pub(crate) target: Vec<u8>,
    pub(crate) kind: u8,
    pub(crate) size: u64,
    pub(crate) sparse: Option<Sparse>,
}

/// A file with holes, which is stored as a map and what lies between them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sparse {
    /// The name that counts, if it is not that of the entry.
    pub(crate) path: Option<Vec<u8>>,
}

/// Why there is no next entry.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// The stream cannot be read.
    Read(io::Error),
    /// The archive is broken.
    Tar(&'static str),
    /// The headers before an entry are too long.
    HeaderBytes,
}

/// Types of entries, POSIX.1-2017 `pax`, "ustar Interchange Format".
pub(crate) mod kind {
    pub(crate) const OLD_FILE: u8 = 0;
    pub(crate) const FILE: u8 = b'0';
    pub(crate) const HARD_LINK: u8 = b'1';
    pub(crate) const SYMLINK: u8 = b'2';
    pub(crate) const CHARACTER_DEVICE: u8 = b'3';
    pub(crate) const BLOCK_DEVICE: u8 = b'4';
    pub(crate) const DIR: u8 = b'5';
    pub(crate) const FIFO: u8 = b'6';
    pub(crate) const CONTIGUOUS: u8 = b'7';
    pub(crate) const GNU_SPARSE: u8 = b'S';
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl<R: Read> Archive<R> {
    /// `header_bytes` bounds what is held of the headers before one entry.
    pub(crate) fn new(reader: R, header_bytes: u64) -> Self {
        Self {
            reader,
            header_bytes,
            left: 0,
            padding: 0,
            count: 0,
            ended: false,
        }
    }

    /// How many entries there were so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The content of the last entry, from where it was left.
    pub(crate) fn content(&mut self) -> Content<'_, R> {
        Content(self)
    }

    /// Skips what is left of the last entry and goes to the next.
    pub(crate) fn next(&mut self) -> Result<Option<Member>, Flaw> {
        let mut extras = Extras::default();
        let mut held = 0;
        while let Some(header) = self.header()? {
            if !header.describes_another() {
                self.count += 1;
                return self.member(&header, extras).map(Some);
            }
            let text = self.text(&header, &mut held)?;
            extras.add(&header, &text).map_err(Flaw::Tar)?;
        }
        if extras.is_empty() {
            Ok(None)
        } else {
            Err(Flaw::Tar("an entry is described and does not come"))
        }
    }

    fn member(&mut self, header: &Header, extras: Extras) -> Result<Member, Flaw> {
        let declared = header.size().map_err(Flaw::Tar)?;
        let is_old_dir = |path: &[u8]| header.kind() == kind::OLD_FILE && path.ends_with(b"/");
        let path = extras.path.unwrap_or_else(|| header.path());
        let kind = if is_old_dir(&path) { kind::DIR } else { header.kind() };
        // Whatever these declare, nothing of it follows.
        let size = match kind {
            kind::HARD_LINK..=kind::FIFO => 0,
            _ => extras.size.unwrap_or(declared),
        };
        let mut sparse = extras.sparse;
        if kind == kind::GNU_SPARSE {
            sparse.get_or_insert_default();
            self.skip_sparse_map(header)?;
        }
        self.expect(size)?;
        Ok(Member {
            path,
            target: extras.target.unwrap_or_else(|| header.target()),
            kind,
            size,
            sparse,
        })
    }

    /// The content of an entry that describes the next one.
    fn text(&mut self, header: &Header, held: &mut u64) -> Result<Vec<u8>, Flaw> {
        let size = header.size().map_err(Flaw::Tar)?;
        *held = held.saturating_add(size).saturating_add(BLOCK_BYTES as u64);
        if *held > self.header_bytes {
            return Err(Flaw::HeaderBytes);
        }
        self.expect(size)?;
        let mut text = Vec::new();
        self.content().read_to_end(&mut text)?;
        if text.len() as u64 == size {
            Ok(text)
        } else {
            Err(Flaw::Tar("the archive ends inside a long name or PAX records"))
        }
    }

    /// The map of an old GNU sparse file goes on in blocks of its own.
    fn skip_sparse_map(&mut self, header: &Header) -> Result<(), Flaw> {
        let mut goes_on = header.has_more_sparse_map();
        while goes_on {
            let block = self.block()?.ok_or(Flaw::Tar("the archive ends inside a sparse map"))?;
            goes_on = header::sparse_map_goes_on(&block);
        }
        Ok(())
    }

    fn expect(&mut self, size: u64) -> Result<(), Flaw> {
        let whole = size.checked_next_multiple_of(BLOCK_BYTES as u64);
        let whole = whole.ok_or(Flaw::Tar("a size is out of range"))?;
        (self.left, self.padding) = (size, whole - size);
        Ok(())
    }

    /// The next header; `None` at the end, which some tools leave out.
    fn header(&mut self) -> Result<Option<Header>, Flaw> {
        self.skip()?;
        if self.ended {
            return Ok(None);
        }
        let Some(block) = self.block()? else {
            return Ok(None);
        };
        if block != [0; BLOCK_BYTES] {
            return Header::new(block).map(Some).map_err(Flaw::Tar);
        }
        self.ended = true;
        match self.block()? {
            Some(second) if second != [0; BLOCK_BYTES] => Err(Flaw::Tar("entries follow a lone block of zeros")),
            _ => Ok(None),
        }
    }

    fn skip(&mut self) -> Result<(), Flaw> {
        let mut skipped = self.content();
        io::copy(&mut skipped, &mut io::sink())?;
        if self.left > 0 {
            return Err(Flaw::Tar("the archive ends inside an entry"));
        }
        // The last block need not be padded.
        io::copy(&mut self.reader.by_ref().take(self.padding), &mut io::sink())?;
        self.padding = 0;
        Ok(())
    }

    fn block(&mut self) -> Result<Option<[u8; BLOCK_BYTES]>, Flaw> {
        let mut block = [0; BLOCK_BYTES];
        let mut filled = 0;
        while filled < BLOCK_BYTES {
            match self.reader.read(&mut block[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(Flaw::Tar("the archive ends inside a header")),
                count => filled += count,
            }
        }
        Ok(Some(block))
    }
}

/// What is left of an entry's content. It ends early where the stream does.
pub(crate) struct Content<'a, R>(&'a mut Archive<R>);

impl<R: Read> Read for Content<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.0.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let count = self.0.reader.read(&mut buffer[..most])?;
        self.0.left -= count as u64;
        Ok(count)
    }
}
