//! Blocks of lines, and where they are written: what all files of the crate use.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use model::{Hasher, Kind, ObjectDigest, SEGMENT_LINES, Sha256};

use crate::RenderError;

/// Lines of one Shard: [`BLOCK_BYTES`] of them, or fewer at its end, because the gzip members
/// depend on the borders.
pub(crate) type Block = Vec<u8>;

/// Size of a block, in bytes: small enough that a dozen in flight do not matter, large enough that
/// segments, which know nothing of those before them, take 1 % more than with the size of 1 MiB.
pub(crate) const BLOCK_BYTES: usize = SEGMENT_LINES as usize;

/// A block on its way to the compressors.
pub(crate) struct Piece {
    /// Tar header that goes before it in the layer.
    pub(crate) frame: Vec<u8>,
    pub(crate) block: Block,
    /// The block as a segment, if a published object has it.
    pub(crate) published: Option<PublishedSegment>,
}

/// A segment as it was read, which was not checked.
pub(crate) struct PublishedSegment {
    pub(crate) bytes: Vec<u8>,
    /// The sha256 in the key of the object that it comes from.
    pub(crate) object: Sha256,
}

/// Destination of the bytes of one object.
pub type Sink = Box<dyn Write + Send>;

/// Destinations of one pass over the catalog, by the kind of the object: an encoding of `all.json`,
/// or [`Kind::Blob`] for the layer of the catalog's image, a tar archive in one gzip member. What
/// has no sink is not made.
pub type Sinks = BTreeMap<Kind, Sink>;

/// Names the object in the error of writing it.
pub(crate) fn failed(part: &'static str) -> impl FnOnce(io::Error) -> RenderError {
    move |source| RenderError::Sink { part, source }
}

/// Counts and hashes bytes on their way to a sink.
pub struct HashingWriter<W> {
    sink: W,
    hasher: Hasher,
    size: u64,
}

impl<W: Write> HashingWriter<W> {
    /// Creates a writer to `sink`.
    pub fn new(sink: W) -> Self {
        Self {
            sink,
            hasher: Hasher::new(),
            size: 0,
        }
    }

    /// Flushes the sink. Returns the number and the hash of the bytes that it was given.
    ///
    /// # Errors
    /// The error of the sink.
    pub fn finish(mut self) -> io::Result<ObjectDigest> {
        self.sink.flush()?;
        Ok(ObjectDigest {
            size: self.size,
            sha256: self.hasher.finish(),
        })
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A sink may take fewer bytes than it is given: only those were written.
        let written = self.sink.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Creates a zstd encoder for one frame with the content size in its header, and a checksum at its
/// end that reveals flipped bits to every reader: the low four bytes of the content's XXH64 (RFC
/// 8878, section 3.1.1).
pub(crate) fn encoder<W: Write>(
    sink: W,
    level: i32,
    size: u64,
) -> io::Result<zstd::Encoder<'static, W>> {
    let mut encoder = zstd::Encoder::new(sink, level)?;
    encoder.set_pledged_src_size(Some(size))?;
    encoder.include_contentsize(true)?;
    encoder.include_checksum(true)?;
    Ok(encoder)
}

/// Decompresses one frame block by block.
pub(crate) fn copy_lines(
    compressed: &[u8],
    mut sink: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut decoder = zstd::Decoder::with_buffer(compressed)?;
    let mut block = vec![0; 128 << 10];
    loop {
        match decoder.read(&mut block)? {
            0 => return Ok(()),
            length => sink(&block[..length])?,
        }
    }
}
