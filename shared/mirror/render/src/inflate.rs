//! Segments of a published `all.json.gz`: the next one takes those of the Packages that did not
//! change.
//!
//! A segment follows from the lines of its Package alone (see [`crate::gzip`]). Its borders are
//! found by inflating it, which takes a third of the time of deflating it again, and yields the
//! lines for the other objects.

use std::collections::VecDeque;
use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};
use model::{Content, Sha256};

use crate::block::{BLOCK_BYTES, Block};
use crate::{deflate::BORDER, gzip::HEADER, shard::Shard};

/// Number of bytes that are read at once.
const INPUT_BYTES: usize = 64 << 10;
/// Size of checksum and size at the end of a gzip member, in bytes (RFC 1952).
const TRAILER: usize = 8;

/// A published `all.json.gz`.
pub struct PublishedGzip {
    /// The sha256 in its key.
    pub sha256: Sha256,
    /// Names and lines of its Shards, in their order.
    pub shards: VecDeque<(String, Content)>,
    /// Its bytes. They are not checked before.
    pub bytes: Box<dyn Read + Send>,
}

/// Reader of the segments of a published `all.json.gz`.
pub(crate) struct PublishedSegments {
    /// The rest of the object: Shards and bytes that were not read.
    pub(crate) rest: PublishedGzip,
    /// Bytes that were read and not inflated.
    input: Vec<u8>,
    inflate: Decompress,
}

/// A block of lines and its deflated bytes, up to the border of the segment if the lines end with
/// it.
pub(crate) struct DeflatedBlock {
    pub(crate) lines: Block,
    pub(crate) deflated: Vec<u8>,
}

impl PublishedSegments {
    pub(crate) fn begin(mut rest: PublishedGzip) -> io::Result<Self> {
        let mut header = [0; HEADER.len()];
        rest.bytes.read_exact(&mut header)?;
        if header != HEADER {
            return Err(damaged());
        }
        Ok(Self {
            rest,
            input: Vec::new(),
            inflate: Decompress::new(false),
        })
    }

    /// Moves to a Shard. Returns false if the object does not have it with these lines. The Shards
    /// are asked for in their order.
    pub(crate) fn find(&mut self, shard: &Shard) -> io::Result<bool> {
        let name = shard.name.as_bytes();
        let is_up_to_name = |(before, _): &mut (String, Content)| before.as_bytes() <= name;
        while let Some((before, lines)) = self.rest.shards.pop_front_if(is_up_to_name) {
            if before == shard.name && lines == shard.lines {
                return Ok(true);
            }
            self.blocks(lines.size, |_| Ok(()))?;
        }
        Ok(false)
    }

    /// Passes the next `size` bytes of lines, which are one Shard, to `each`.
    pub(crate) fn blocks(
        &mut self,
        size: u64,
        mut each: impl FnMut(DeflatedBlock) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut left = size;
        while left > 0 {
            let length = left.min(BLOCK_BYTES as u64);
            left -= length;
            each(self.block(length as usize, left == 0)?)?;
        }
        Ok(())
    }

    fn block(&mut self, length: usize, is_last: bool) -> io::Result<DeflatedBlock> {
        let (mut lines, mut deflated) = (vec![0; length], Vec::new());
        let (mut inflated, mut at_border) = (0, false);
        while inflated < length || is_last && !at_border {
            let end = self.next_border()?;
            let before = (self.inflate.total_in(), self.inflate.total_out());
            let (input, output) = (&self.input[..end], &mut lines[inflated..]);
            let status = self
                .inflate
                .decompress(input, output, FlushDecompress::None);
            let used = (self.inflate.total_in() - before.0) as usize;
            let made = (self.inflate.total_out() - before.1) as usize;
            // The stream goes on after the lines, because each segment has a border.
            if !matches!(status, Ok(Status::Ok | Status::BufError)) || used + made == 0 {
                return Err(damaged());
            }
            at_border = used == end && input.ends_with(&BORDER);
            inflated += made;
            deflated.extend(self.input.drain(..used));
        }
        Ok(DeflatedBlock { lines, deflated })
    }

    /// Returns the number of bytes up to the end of the next border, or of some bytes without one.
    /// The decompressor must not get bytes beyond a border: it would begin with the next segment.
    fn next_border(&mut self) -> io::Result<usize> {
        loop {
            let mut windows = self.input.windows(BORDER.len());
            if let Some(at) = windows.position(|window| window == BORDER) {
                return Ok(at + BORDER.len());
            }
            // The last ones may be the begin of a border.
            let without = self.input.len().saturating_sub(BORDER.len() - 1);
            if without > 0 {
                return Ok(without);
            }
            let next = &mut self.rest.bytes.by_ref().take(INPUT_BYTES as u64);
            if next.read_to_end(&mut self.input)? == 0 {
                return Err(damaged());
            }
        }
    }

    /// Reads the rest: only a stream that ends as it should proves that the last border was one.
    pub(crate) fn end(mut self) -> io::Result<()> {
        while let Some((_, lines)) = self.rest.shards.pop_front() {
            self.blocks(lines.size, |_| Ok(()))?;
        }
        let mut rest = self.input;
        self.rest
            .bytes
            .take(INPUT_BYTES as u64)
            .read_to_end(&mut rest)?;
        let before = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(&rest, &mut [0], FlushDecompress::Finish);
        let used = (self.inflate.total_in() - before.0) as usize;
        match status {
            Ok(Status::StreamEnd)
                if self.inflate.total_out() == before.1 && rest.len() == used + TRAILER =>
            {
                Ok(())
            }
            _ => Err(damaged()),
        }
    }
}

fn damaged() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
