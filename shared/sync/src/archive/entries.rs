use std::{
    fs::File,
    io::{self, BufReader, Read},
};

use layout::{Hasher, Stored};

use super::{
    ArchiveError, PackedObject,
    tape::{BLOCK, END, header},
};
use crate::Flaw;

/// The entries of a volume that is being read from its beginning.
pub(super) struct Entries<'a> {
    name: &'a str,
    file: BufReader<&'a File>,
    offset: u64,
}

impl<'a> Entries<'a> {
    pub(super) fn new(name: &'a str, file: &'a File) -> Self {
        Self {
            name,
            file: BufReader::with_capacity(64 << 10, file),
            offset: 0,
        }
    }

    /// An entry whose size only its header tells.
    pub(super) fn document(&mut self, path: &str, max: u64) -> Result<Vec<u8>, ArchiveError> {
        let block = self.block()?;
        let size = tar::Header::from_byte_slice(&block).entry_size().unwrap_or(u64::MAX);
        if size > max {
            return Err(self.malformed(format!("there is no {path} where one should be")));
        }
        self.expect_header(&block, path, size)?;
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(size).read_to_end(&mut bytes);
        read.map_err(|source| ArchiveError::unreadable(self.name, source))?;
        if bytes.len() as u64 != size {
            return Err(ArchiveError::unreadable(self.name, io::ErrorKind::UnexpectedEof.into()));
        }
        self.offset += size;
        self.fill(size)?;
        Ok(bytes)
    }

    /// Checks an entry that the manifest describes, and returns where its content starts.
    pub(super) fn object(&mut self, object: &PackedObject) -> Result<u64, ArchiveError> {
        let block = self.block()?;
        self.expect_header(&block, &object.key, object.size)?;
        let offset = self.offset;
        let mut hasher = Hasher::new();
        let mut left = object.size;
        let mut block = vec![0; 64 << 10];
        while left > 0 {
            let length = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.exact(&mut block[..length])?;
            hasher.update(&block[..length]);
            left -= length as u64;
        }
        self.fill(object.size)?;
        let sha256 = hasher.finish();
        if sha256 == object.sha256 {
            return Ok(offset);
        }
        Err(ArchiveError::Flawed {
            key: object.key.clone(),
            source: Flaw::Stored {
                found: object.size,
                sha256,
                recorded: Stored {
                    size: object.size,
                    sha256: object.sha256,
                },
            },
        })
    }

    /// There is one header that an entry can have.
    fn expect_header(&self, block: &[u8; BLOCK as usize], path: &str, size: u64) -> Result<(), ArchiveError> {
        let expected = header(path, size).map_err(|_| self.malformed(format!("{path:?} is no path")))?;
        if expected.as_bytes() == block {
            return Ok(());
        }
        Err(self.malformed(format!("the header of {path} is not the one that it should have")))
    }

    fn block(&mut self) -> Result<[u8; BLOCK as usize], ArchiveError> {
        let mut block = [0; BLOCK as usize];
        self.exact(&mut block)?;
        Ok(block)
    }

    fn exact(&mut self, buffer: &mut [u8]) -> Result<(), ArchiveError> {
        let read = self.file.read_exact(buffer);
        read.map_err(|source| ArchiveError::unreadable(self.name, source))?;
        self.offset += buffer.len() as u64;
        Ok(())
    }

    fn fill(&mut self, size: u64) -> Result<(), ArchiveError> {
        self.zeros(size.next_multiple_of(BLOCK) - size)
    }

    fn zeros(&mut self, count: u64) -> Result<(), ArchiveError> {
        let mut bytes = vec![0; count as usize];
        self.exact(&mut bytes)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        Err(self.malformed("there is something where nothing should be".to_owned()))
    }

    /// There is nothing more.
    pub(super) fn end(&mut self) -> Result<(), ArchiveError> {
        self.zeros(END)?;
        let more = self
            .file
            .read(&mut [0])
            .map_err(|source| ArchiveError::unreadable(self.name, source))?;
        if more == 0 {
            return Ok(());
        }
        Err(self.malformed("it goes on after its end".to_owned()))
    }

    pub(super) fn malformed(&self, what: String) -> ArchiveError {
        ArchiveError::Malformed {
            volume: self.name.to_owned(),
            what,
        }
    }
}
