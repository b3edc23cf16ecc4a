//! Tar archives, entry by entry, as Go's `archive/tar` reads them.
//!
//! The `tar` crate is not used because readers disagree about hostile archives: on the winner of
//! two PAX records, on the end of a record with a line feed, on the content of a link. Container
//! engines and catalogd are written in Go, so an image must mean the same here as there. Archives
//! that Go readers do not agree on are refused. Formats: POSIX.1-2017 `pax` and `ustar`, and the
//! long names of GNU tar.

mod header;
mod pax;

use std::io::{self, Read, Take};

use ::tar::EntryType;
use header::{BLOCK_BYTES, Header};
use pax::EntryExtras;

/// Reads entries from a stream without seeking.
pub(crate) struct TarReader<R> {
    /// Archive, limited to the rest of the last entry's content.
    reader: Take<R>,
    header_bytes: u64,
    /// Bytes of the headers before the next entry so far.
    held: u64,
    /// Bytes that fill the last block of that content.
    padding: u64,
    /// Number of entries so far, extended headers not counted.
    pub(crate) count: u64,
}

/// An entry, with its extended headers applied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TarEntry {
    pub(crate) path: Vec<u8>,
    /// Target of a link; empty for other entries.
    pub(crate) target: Vec<u8>,
    pub(crate) kind: EntryType,
    pub(crate) size: u64,
    /// Real name of a sparse file, which is stored as a map and the data between its holes. Empty
    /// if the entry has that name.
    pub(crate) sparse: Option<Vec<u8>>,
}

/// The reason for which there is no next entry.
#[derive(Debug)]
pub(crate) enum TarError {
    /// The stream cannot be read or decompressed.
    Read(io::Error),
    /// The archive is broken, or readers could understand it in different ways.
    Malformed(&'static str),
    /// The headers before an entry are too long.
    HeaderBytes,
}

impl From<io::Error> for TarError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl<R: Read> TarReader<R> {
    /// `header_bytes` limits the memory for the headers before one entry.
    pub(crate) fn new(reader: R, header_bytes: u64) -> Self {
        Self {
            reader: reader.take(0),
            header_bytes,
            held: 0,
            padding: 0,
            count: 0,
        }
    }

    /// Skips the rest of the last entry and returns the next one. Not to be called again after the
    /// last one.
    pub(crate) fn next(&mut self) -> Result<Option<TarEntry>, TarError> {
        let mut extras = EntryExtras::default();
        self.held = 0;
        while let Some(header) = self.header()? {
            if !header.describes_another() {
                // Extended headers do not count, so that an error names the entry that a user sees.
                self.count += 1;
                return self.member(&header, extras).map(Some);
            }
            let text = self.text(&header)?;
            extras.add(&header, &text).map_err(TarError::Malformed)?;
        }
        if !extras.is_empty() {
            return Err(TarError::Malformed(
                "an entry is described and does not come",
            ));
        }
        Ok(None)
    }

    /// Reads what follows the archive, so that a checksum of its compression is compared.
    pub(crate) fn read_trailer(&mut self) -> io::Result<()> {
        io::copy(self.reader.get_mut(), &mut io::sink()).map(drop)
    }

    fn member(&mut self, header: &Header, extras: EntryExtras) -> Result<TarEntry, TarError> {
        let declared = header.size().map_err(TarError::Malformed)?;
        let pax = extras.into_fields().map_err(TarError::Malformed)?;
        let path = pax.path.unwrap_or_else(|| header.path());
        // Archives of the time before POSIX mark a directory by a slash at the end of its name.
        let kind = if header.kind() == 0 && path.ends_with(b"/") {
            EntryType::Directory
        } else {
            EntryType::new(header.kind())
        };
        // No content follows these entries, whatever size they declare.
        let size = match kind {
            EntryType::Link
            | EntryType::Symlink
            | EntryType::Char
            | EntryType::Block
            | EntryType::Directory
            | EntryType::Fifo => 0,
            // A PAX size overrides the header, which cannot hold more than 8 GiB. Readers that
            // ignored it took content for headers.
            _ => pax.size.unwrap_or(declared),
        };
        let mut sparse = pax.sparse;
        if kind == EntryType::GNUSparse {
            sparse.get_or_insert_default();
            self.skip_sparse_map(header)?;
        }
        self.expect(size)?;
        Ok(TarEntry {
            path,
            // Other entries have no target, whatever a long name or a PAX record says.
            target: match kind {
                EntryType::Link | EntryType::Symlink => {
                    pax.target.unwrap_or_else(|| header.target())
                }
                _ => Vec::new(),
            },
            kind,
            size,
            sparse,
        })
    }

    /// Returns the content of an extended header.
    fn text(&mut self, header: &Header) -> Result<Vec<u8>, TarError> {
        let size = header.size().map_err(TarError::Malformed)?;
        self.hold(size.saturating_add(BLOCK_BYTES as u64))?;
        self.expect(size)?;
        let mut text = Vec::new();
        self.read_to_end(&mut text)?;
        // A cut name could be the name of another file.
        if (text.len() as u64) < size {
            return Err(TarError::Malformed(
                "the archive ends inside a long name or PAX records",
            ));
        }
        Ok(text)
    }

    /// Counts bytes of headers before one entry.
    fn hold(&mut self, bytes: u64) -> Result<(), TarError> {
        self.held = self.held.saturating_add(bytes);
        if self.held > self.header_bytes {
            return Err(TarError::HeaderBytes);
        }
        Ok(())
    }

    /// Skips the extra blocks of an old GNU sparse map.
    fn skip_sparse_map(&mut self, header: &Header) -> Result<(), TarError> {
        // Star has the same type with other fields, so the map would be looked for in the wrong
        // place.
        if !header.is_gnu() {
            return Err(TarError::Malformed("a sparse file has no header of GNU"));
        }
        let mut goes_on = header.has_more_sparse_map();
        while goes_on {
            self.hold(BLOCK_BYTES as u64)?;
            let ended = TarError::Malformed("the archive ends inside a sparse map");
            let block = self.block()?.ok_or(ended)?;
            goes_on = header::sparse_map_goes_on(&block);
        }
        Ok(())
    }

    fn expect(&mut self, size: u64) -> Result<(), TarError> {
        let Some(whole) = size.checked_next_multiple_of(BLOCK_BYTES as u64) else {
            return Err(TarError::Malformed("a size is out of range"));
        };
        self.reader.set_limit(size);
        self.padding = whole - size;
        Ok(())
    }

    /// Returns the next header, or `None` at the end. Some tools leave out the blocks that mark the
    /// end.
    fn header(&mut self) -> Result<Option<Header>, TarError> {
        self.skip()?;
        let Some(block) = self.block()? else {
            return Ok(None);
        };
        if block != [0; BLOCK_BYTES] {
            return Header::new(block).map(Some).map_err(TarError::Malformed);
        }
        match self.block()? {
            Some(second) if second != [0; BLOCK_BYTES] => {
                Err(TarError::Malformed("entries follow a lone block of zeros"))
            }
            _ => Ok(None),
        }
    }

    fn skip(&mut self) -> Result<(), TarError> {
        io::copy(self, &mut io::sink())?;
        if self.reader.limit() > 0 {
            return Err(TarError::Malformed("the archive ends inside an entry"));
        }
        // Some tools do not fill the last block.
        self.reader.set_limit(self.padding);
        io::copy(self, &mut io::sink())?;
        self.padding = 0;
        Ok(())
    }

    fn block(&mut self) -> Result<Option<[u8; BLOCK_BYTES]>, TarError> {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        self.reader.set_limit(BLOCK_BYTES as u64);
        self.reader.read_to_end(&mut block)?;
        self.reader.set_limit(0);
        match block.try_into() {
            Ok(block) => Ok(Some(block)),
            Err(part) if part.is_empty() => Ok(None),
            Err(_) => Err(TarError::Malformed("the archive ends inside a header")),
        }
    }
}

/// Reads the rest of the last entry's content. Ends early if the stream does.
impl<R: Read> Read for TarReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

#[cfg(test)]
mod tests;
