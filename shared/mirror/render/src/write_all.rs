use std::io::{self, Write};
use std::thread::{self, ScopedJoinHandle};
use std::{collections::BTreeMap, mem, num::NonZero};

use model::{Encoding, Hasher, Kind, ObjectDigest, Sha256};
use xxhash_rust::xxh64::Xxh64;

use crate::gzip::{self, Lanes};
use crate::inflate::{DeflatedBlock, PublishedGzip, PublishedSegments};
use crate::{RenderError, Rendering, Shard, frame::JoinedFrame, shard::copy_lines};

/// Lines of one Shard: [`BLOCK_BYTES`] of them, or fewer at its end, because the gzip members
/// depend on the borders.
pub(crate) type Block = Vec<u8>;

/// A block on its way to the compressors.
pub(crate) struct Piece {
    /// Tar header that goes before it in the layer.
    pub(crate) frame: Vec<u8>,
    pub(crate) block: Block,
    /// The block as a segment, if a published object has it.
    pub(crate) deflated: Option<Vec<u8>>,
}

/// Size of a block, in bytes: small enough that a dozen in flight do not matter, large enough that
/// segments, which know nothing of those before them, take 1 % more than with the size of 1 MiB.
pub(crate) const BLOCK_BYTES: usize = 512 << 10;

/// Moves lines to a block until it is full. Returns true if it is.
pub(crate) fn fill(block: &mut Block, lines: &mut &[u8]) -> bool {
    let (now, later) = lines.split_at(lines.len().min(BLOCK_BYTES - block.len()));
    block.extend_from_slice(now);
    *lines = later;
    block.len() == BLOCK_BYTES
}

/// Destination of the bytes of one object.
pub type Sink = Box<dyn Write + Send>;

/// Destinations of one pass over the catalog, by the kind of the object: an encoding of `all.json`,
/// or [`Kind::Blob`] for the layer of the catalog's image, a tar archive in one gzip member. What
/// has no sink is not made.
pub type Sinks = BTreeMap<Kind, Sink>;

/// Hashes and sizes that one pass over the whole catalog found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllFacts {
    /// The sha256 of `all.json`.
    pub content_hash: Sha256,
    /// Size of `all.json`, in bytes.
    pub size: u64,
    /// Objects as they were written, by their kind: those that had a sink.
    pub made: BTreeMap<Kind, ObjectDigest>,
    /// The sha256 of the uncompressed tar archive of the layer, if that had a sink.
    pub diff_id: Option<Sha256>,
}

/// Kinds of the objects that one pass can make.
const MADE: [Kind; 4] = [
    Kind::All(Encoding::Zstd),
    Kind::All(Encoding::Gzip),
    Kind::All(Encoding::Identity),
    Kind::Blob,
];

impl Rendering {
    /// Reads all Shards once, in order, and writes the whole catalog in each encoding that has a
    /// sink. Other threads deflate.
    ///
    /// # Errors
    /// [`RenderError::Damaged`] and [`RenderError::Unreadable`] for stored Shards that cannot be
    /// used, [`RenderError::Sink`], [`RenderError::Scratch`].
    pub fn write_all(&self, mut sinks: Sinks) -> Result<AllFacts, RenderError> {
        let size = self.shards.iter().map(|shard| shard.lines.size).sum();
        let settings = &self.context.settings;
        let [zstd, gzip, identity, layer] = MADE.map(|kind| sinks.remove(&kind));
        let zstd = zstd.map(|sink| JoinedFrame::begin(sink, size, settings.shard_level));
        let zstd = zstd.transpose().map_err(failed(ZSTD))?;
        let is_framed = layer.is_some();
        thread::scope(|scope| {
            let deflating = (gzip.is_some() || is_framed).then(|| {
                let threads = thread::available_parallelism().map_or(1, NonZero::get);
                let (lanes, segments) = gzip::lanes(scope, threads, settings.gzip_level);
                (
                    lanes,
                    scope.spawn(move || gzip::write(&segments, gzip, layer)),
                )
            });
            let (lanes, gzip) = deflating.unzip();
            let mut blocks = BlockWriter {
                layer: is_framed.then(oci::Layer::default),
                block: Vec::with_capacity(BLOCK_BYTES),
                zstd,
                identity,
                lanes,
                ..BlockWriter::default()
            };
            let fed = self.feed(&mut blocks);
            if let Some(error) = blocks.failed {
                return Err(error);
            }
            let fed = match fed {
                // The threads then ended too soon: their errors are a consequence.
                Err(error) if !matches!(error, RenderError::Scratch(_)) => return Err(error),
                fed => fed,
            };
            blocks.lanes = None;
            // A thread that failed made the reading stop: its error is the cause.
            let gzip = gzip.map(finish).transpose()?.unwrap_or_default();
            fed?;
            let content_hash = blocks.hasher.finish();
            let zstd = blocks
                .zstd
                .map(JoinedFrame::end)
                .transpose()
                .map_err(failed(ZSTD))?;
            let identity = blocks.identity.map(|mut sink| sink.flush());
            let identity = identity.transpose().map_err(failed(IDENTITY))?;
            let identity = identity.map(|()| ObjectDigest {
                size,
                sha256: content_hash,
            });
            let made = MADE.into_iter().zip([zstd, gzip.all, identity, gzip.layer]);
            Ok(AllFacts {
                content_hash,
                size,
                made: made
                    .filter_map(|(kind, digest)| Some((kind, digest?)))
                    .collect(),
                diff_id: gzip.diff_id,
            })
        })
    }

    fn feed(&self, blocks: &mut BlockWriter) -> Result<(), RenderError> {
        let mut published = self.published_segments(blocks)?;
        for shard in &self.shards {
            self.context.check_budget()?;
            let compressed = shard.body.read(&self.context)?;
            blocks
                .begin(shard, &compressed)
                .map_err(RenderError::Scratch)?;
            if let Some(published) = &mut published
                && in_published(published.rest.sha256, published.find(shard))?
            {
                self.feed_segment(shard, &compressed, published, blocks)?;
            } else {
                self.feed_shard(shard, &compressed, blocks)?;
            }
            blocks.send().map_err(RenderError::Scratch)?;
        }
        if let Some(published) = published {
            in_published(published.rest.sha256, published.end())?;
        }
        blocks.end().map_err(RenderError::Scratch)
    }

    /// Feeds a Shard from a published `all.json.gz`, whose lines must have the checksum of the
    /// stored Shard.
    fn feed_segment(
        &self,
        shard: &Shard,
        compressed: &[u8],
        published: &mut PublishedSegments,
        blocks: &mut BlockWriter,
    ) -> Result<(), RenderError> {
        // The content hash takes another pass over the lines; a second sha256 would cost as much as
        // decompressing them.
        let mut check = Xxh64::new(0);
        let fed = published.blocks(shard.lines.size, |block| {
            check.update(&block.lines);
            // A Package may have gigabytes.
            self.check_budget().map_err(io::Error::other)?;
            blocks.add_block(block)
        });
        self.context.check_budget()?;
        in_published(published.rest.sha256, fed)?;
        if compressed.last_chunk() != Some(&(check.digest() as u32).to_le_bytes()) {
            return Err(RenderError::Damaged(published.rest.sha256));
        }
        Ok(())
    }

    fn published_segments(
        &self,
        blocks: &BlockWriter,
    ) -> Result<Option<PublishedSegments>, RenderError> {
        let is_useful = blocks.lanes.is_some() && self.shards.iter().any(Shard::is_stored);
        let published = is_useful.then(|| self.context.stored.gzip()).flatten();
        let begin = |published: PublishedGzip| {
            in_published(published.sha256, PublishedSegments::begin(published))
        };
        published.map(begin).transpose()
    }

    /// Decompresses a Shard. Bytes of the store are hashed as well, before and after decompression.
    fn feed_shard(
        &self,
        shard: &Shard,
        compressed: &[u8],
        blocks: &mut BlockWriter,
    ) -> Result<(), RenderError> {
        let mut check = Hasher::new();
        let copied = copy_lines(compressed, |lines| {
            if shard.is_stored() {
                check.update(lines);
            }
            // A Package may have gigabytes.
            self.check_budget().map_err(io::Error::other)?;
            blocks.add(lines)
        });
        self.context.check_budget()?;
        match copied {
            Err(error) if !shard.is_stored() || error.kind() == STOPPED => {
                Err(RenderError::Scratch(error))
            }
            Ok(()) if !shard.is_stored() || check.finish() == shard.lines.sha256 => Ok(()),
            _ => Err(RenderError::Damaged(shard.stored.sha256)),
        }
    }
}

/// Names the published object in the error of reading it.
fn in_published<T>(sha256: Sha256, read: io::Result<T>) -> Result<T, RenderError> {
    read.map_err(|source| match source.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => RenderError::Damaged(sha256),
        STOPPED => RenderError::Scratch(source),
        _ => RenderError::Unreadable { sha256, source },
    })
}

const ZSTD: &str = "all.json.zst";
const IDENTITY: &str = "all.json";

/// Names the object in the error of writing it.
pub(crate) fn failed(part: &'static str) -> impl FnOnce(io::Error) -> RenderError {
    move |source| RenderError::Sink { part, source }
}

fn finish<T>(writer: ScopedJoinHandle<'_, T>) -> T {
    writer
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Kind of the error for a writer that has stopped. Its own error says why, and what was read is
/// not at fault.
const STOPPED: io::ErrorKind = io::ErrorKind::BrokenPipe;

/// Collects lines into blocks, and writes each to all destinations.
#[derive(Default)]
struct BlockWriter {
    hasher: Hasher,
    /// The tar archive around the lines, if the layer has a sink.
    layer: Option<oci::Layer>,
    frame: Vec<u8>,
    block: Block,
    deflated: Option<Vec<u8>>,
    zstd: Option<JoinedFrame>,
    /// True if `zstd` has the lines of the Shard already.
    is_joined: bool,
    identity: Option<Sink>,
    lanes: Option<Lanes>,
    /// Cause of the error that a method returned, if that is the sink of `zstd` or `identity`.
    failed: Option<RenderError>,
}

impl BlockWriter {
    fn begin(&mut self, shard: &Shard, compressed: &[u8]) -> io::Result<()> {
        if let Some(layer) = &mut self.layer {
            self.frame
                .extend(layer.before(&shard.name, shard.lines.size));
        }
        let added = self
            .zstd
            .as_mut()
            .map_or(Ok(false), |zstd| zstd.add_frame(compressed));
        self.is_joined = self.written(ZSTD, added)?;
        Ok(())
    }

    fn add(&mut self, mut lines: &[u8]) -> io::Result<()> {
        self.hasher.update(lines);
        while !lines.is_empty() {
            if fill(&mut self.block, &mut lines) {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Sends a block that was deflated before. No lines of its Shard wait.
    fn add_block(&mut self, block: DeflatedBlock) -> io::Result<()> {
        self.hasher.update(&block.lines);
        self.block = block.lines;
        self.deflated = Some(block.deflated);
        self.send()
    }

    fn end(&mut self) -> io::Result<()> {
        if let Some(layer) = self.layer.take() {
            self.frame.extend(layer.end());
        }
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        if self.block.is_empty() && self.frame.is_empty() {
            return Ok(());
        }
        let block = mem::replace(&mut self.block, Vec::with_capacity(BLOCK_BYTES));
        let added = match &mut self.zstd {
            Some(zstd) if self.is_joined => {
                zstd.count(&block);
                Ok(())
            }
            // The end of the layer has no lines.
            Some(zstd) if !block.is_empty() => zstd.add_lines(&block),
            _ => Ok(()),
        };
        self.written(ZSTD, added)?;
        let identity = self
            .identity
            .as_mut()
            .map_or(Ok(()), |sink| sink.write_all(&block));
        self.written(IDENTITY, identity)?;
        let piece = Piece {
            frame: mem::take(&mut self.frame),
            block,
            deflated: self.deflated.take(),
        };
        if self.lanes.as_mut().is_none_or(|lanes| lanes.send(piece)) {
            return Ok(());
        }
        Err(stopped())
    }

    /// Keeps the error of a sink as the cause.
    fn written<T>(&mut self, part: &'static str, written: io::Result<T>) -> io::Result<T> {
        written.map_err(|error| {
            self.failed = Some(failed(part)(error));
            stopped()
        })
    }
}

fn stopped() -> io::Error {
    io::Error::new(STOPPED, "a writer has stopped")
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
