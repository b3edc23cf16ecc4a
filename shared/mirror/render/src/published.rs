//! Segments of a published `all.json.gz`: the next one takes those of the Packages that did not
//! change.
//!
//! A segment follows from the lines of its Package alone (see [`crate::gzip`]), and the Snapshot
//! records the size of each, so its bytes are copied as they are. Neither the record nor the bytes
//! are believed: each segment is proven as a new one is (see [`crate::proof`]), and the bytes must
//! have the hash in the key of the object.

use std::collections::VecDeque;
use std::io::{self, Read};

use model::{Content, Hasher, ObjectDigest, Sha256, Snapshot};

use crate::gzip::{HEADER, LAST_BLOCK};

/// Maximum size of a segment in bytes: lines that do not compress take five bytes more for each
/// 64 KiB of them, and the end of the segment.
const SEGMENT_MAX: u32 = 513 << 10;
/// Size of checksum and size at the end of a gzip member, in bytes (RFC 1952).
const TRAILER: usize = 8;

/// Reader of a published `all.json.gz` whose segments are recorded.
pub struct PublishedGzip {
    object: ObjectDigest,
    /// Shards that were not passed, in their order.
    shards: VecDeque<PublishedShard>,
    /// Bytes that were not read.
    bytes: Box<dyn Read + Send>,
    /// Hasher of the bytes that were read.
    hasher: Hasher,
}

/// Place of a Shard in the object.
struct PublishedShard {
    name: String,
    lines: Content,
    /// Sizes of its segments, in bytes.
    segments: Vec<u32>,
}

impl PublishedGzip {
    /// Creates a reader of the `all.json.gz` of a Snapshot. `None` if the Snapshot has no usable
    /// record of its segments.
    pub fn new(snapshot: &Snapshot, bytes: Box<dyn Read + Send>) -> Option<Self> {
        if snapshot.segments.iter().any(|size| *size > SEGMENT_MAX) {
            return None;
        }
        let mut shards = VecDeque::new();
        for (shard, segments) in snapshot.shards_with_segments()? {
            shards.push_back(PublishedShard {
                name: shard.name.clone(),
                lines: shard.lines,
                segments: segments.to_vec(),
            });
        }
        Some(Self {
            object: snapshot.all.gzip,
            shards,
            bytes,
            hasher: Hasher::new(),
        })
    }

    /// Returns the sha256 in the key of the object.
    pub(crate) const fn sha256(&self) -> Sha256 {
        self.object.sha256
    }

    /// Reads the header. To be called first.
    pub(crate) fn read_header(&mut self) -> io::Result<()> {
        match self.read(HEADER.len())? == HEADER {
            true => Ok(()),
            false => Err(damaged()),
        }
    }

    /// Moves to a Shard, and returns the sizes of its segments. `None` if the object does not have
    /// it with these lines. The Shards are asked for in their order, and all segments of one are
    /// read before the next is asked for.
    pub(crate) fn find(&mut self, name: &str, lines: &Content) -> io::Result<Option<Vec<u32>>> {
        while let Some(before) = self
            .shards
            .pop_front_if(|before| before.name.as_bytes() <= name.as_bytes())
        {
            if before.name == name && before.lines == *lines {
                return Ok(Some(before.segments));
            }
            self.skip(&before)?;
        }
        Ok(None)
    }

    /// Reads the next segment, which has `size` bytes.
    pub(crate) fn segment(&mut self, size: u32) -> io::Result<Vec<u8>> {
        self.read(size as usize)
    }

    /// Reads the rest, and compares the hash of all bytes with the key.
    pub(crate) fn end(mut self) -> io::Result<()> {
        while let Some(shard) = self.shards.pop_front() {
            self.skip(&shard)?;
        }
        self.read(LAST_BLOCK.len() + TRAILER)?;
        let is_whole = self.bytes.read(&mut [0])? == 0;
        match is_whole && self.hasher.finish() == self.object.sha256 {
            true => Ok(()),
            false => Err(damaged()),
        }
    }

    fn skip(&mut self, shard: &PublishedShard) -> io::Result<()> {
        for size in &shard.segments {
            self.segment(*size)?;
        }
        Ok(())
    }

    fn read(&mut self, size: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; size];
        self.bytes.read_exact(&mut bytes)?;
        self.hasher.update(&bytes);
        Ok(bytes)
    }
}

fn damaged() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
