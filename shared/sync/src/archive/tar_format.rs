//! Tar format of a volume (POSIX.1-2017, `pax`, "ustar Interchange Format").
//!
//! ```text
//! header 512 | manifest.json | zeros up to 512
//! header 512 | volume.json   | zeros up to 512
//! header 512 | object        | zeros up to 512     in the order of the manifest
//! 1024 zeros
//! ```
//!
//! All headers have the same owner, mode and time, so every byte of a volume follows from its manifest. That leaves no
//! room for content that only another tar reader would see.

use std::{
    fs::File,
    io::{self, BufReader, Read},
};

use model::Hasher;
use tar::{EntryType, Header};

use super::{ArchiveError, PackedObject};

/// Path of the first entry of every volume.
pub(super) const MANIFEST: &str = "manifest.json";
/// Path of the second entry of every volume.
pub(super) const VOLUME: &str = "volume.json";
/// Size of a header; content is filled up to a multiple of it.
pub(super) const BLOCK: u64 = 512;
/// Size of the end of a volume: two empty blocks.
pub(super) const END: u64 = 2 * BLOCK;
/// Size of one read. Large enough for long reads from slow media, small beside the documents in memory.
pub(super) const READ_BYTES: usize = 64 << 10;

/// Returns the header of an entry.
///
/// # Errors
/// Fails for a path that does not fit: `catalogs/NAME/current.json` with a name of more than 146 characters.
pub(super) fn header(path: &str, size: u64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(path)?;
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

/// Returns the number of bytes that an entry takes in a volume.
pub(super) const fn entry_size(size: u64) -> u64 {
    BLOCK + size.next_multiple_of(BLOCK)
}

/// Reader of the entries of one volume, from its beginning.
pub(super) struct VolumeReader<'a> {
    name: &'a str,
    file: BufReader<&'a File>,
    offset: u64,
}

impl<'a> VolumeReader<'a> {
    pub(super) fn new(name: &'a str, file: &'a File) -> Self {
        Self {
            name,
            file: BufReader::with_capacity(READ_BYTES, file),
            offset: 0,
        }
    }

    /// Reads an entry of at most `max` bytes. Its size is known from its header alone.
    pub(super) fn document(&mut self, path: &str, max: u64) -> Result<Vec<u8>, ArchiveError> {
        let block = self.block()?;
        let size = Header::from_byte_slice(&block).entry_size().unwrap_or(u64::MAX);
        if size > max {
            return Err(self.malformed(format!("{path} is missing or too large")));
        }
        self.expect_header(&block, path, size)?;
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(size).read_to_end(&mut bytes);
        read.map_err(|source| ArchiveError::read(self.name, source))?;
        if bytes.len() as u64 != size {
            return Err(ArchiveError::read(self.name, io::ErrorKind::UnexpectedEof.into()));
        }
        self.offset += size;
        self.padding(size)?;
        Ok(bytes)
    }

    /// Checks an entry that the manifest describes and returns the offset of its content.
    pub(super) fn object(&mut self, object: &PackedObject) -> Result<u64, ArchiveError> {
        let block = self.block()?;
        self.expect_header(&block, &object.key, object.size)?;
        let offset = self.offset;
        let mut hasher = Hasher::new();
        let mut left = object.size;
        let mut buffer = vec![0; READ_BYTES];
        while left > 0 {
            let length = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.exact(&mut buffer[..length])?;
            hasher.update(&buffer[..length]);
            left -= length as u64;
        }
        self.padding(object.size)?;
        let found = hasher.finish();
        if found == object.sha256 {
            return Ok(offset);
        }
        Err(ArchiveError::Hash {
            key: object.key.clone(),
            found,
            expected: object.sha256,
        })
    }

    /// Compares a header with the only one that the entry can have.
    fn expect_header(&self, block: &[u8; BLOCK as usize], path: &str, size: u64) -> Result<(), ArchiveError> {
        let expected = header(path, size).map_err(|_| self.malformed(format!("{path:?} is not a valid path")))?;
        if expected.as_bytes() == block {
            return Ok(());
        }
        Err(self.malformed(format!("the header of {path} is not the expected one")))
    }

    fn block(&mut self) -> Result<[u8; BLOCK as usize], ArchiveError> {
        let mut block = [0; BLOCK as usize];
        self.exact(&mut block)?;
        Ok(block)
    }

    fn exact(&mut self, buffer: &mut [u8]) -> Result<(), ArchiveError> {
        let read = self.file.read_exact(buffer);
        read.map_err(|source| ArchiveError::read(self.name, source))?;
        self.offset += buffer.len() as u64;
        Ok(())
    }

    fn padding(&mut self, size: u64) -> Result<(), ArchiveError> {
        self.zeros(size.next_multiple_of(BLOCK) - size)
    }

    fn zeros(&mut self, count: u64) -> Result<(), ArchiveError> {
        let mut bytes = vec![0; count as usize];
        self.exact(&mut bytes)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        // Other readers skip padding, so it could carry anything.
        Err(self.malformed("padding that is not zero".to_owned()))
    }

    /// Checks that the volume ends here.
    pub(super) fn end(&mut self) -> Result<(), ArchiveError> {
        self.zeros(END)?;
        let more = self.file.read(&mut [0]);
        match more.map_err(|source| ArchiveError::read(self.name, source))? {
            0 => Ok(()),
            _ => Err(self.malformed("bytes follow its end".to_owned())),
        }
    }

    pub(super) fn malformed(&self, reason: String) -> ArchiveError {
        ArchiveError::Malformed {
            volume: self.name.to_owned(),
            reason,
        }
    }
}
