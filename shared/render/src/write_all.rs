use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::{collections::BTreeMap, mem, num::NonZero, sync::Arc};

use model::{Encoding, Hasher, Kind, ObjectDigest, Sha256, ZSTD_WINDOW_LOG_MAX};
use xxhash_rust::xxh64::Xxh64;

use crate::gzip::{self, Lanes};
use crate::inflate::{DeflatedBlock, PublishedGzip, PublishedSegments};
use crate::shard::{copy_lines, encoder};
use crate::{RenderError, Rendering, Shard};

/// Lines of one Shard: [`BLOCK_BYTES`] of them, or fewer at its end, because the gzip members depend on the borders.
pub(crate) type Block = Vec<u8>;

/// A block on its way to the compressors.
pub(crate) struct Piece {
    /// Tar header that goes before it in the layer.
    pub(crate) frame: Vec<u8>,
    pub(crate) block: Arc<Block>,
    /// The block as a segment, if a published object has it.
    pub(crate) deflated: Option<Vec<u8>>,
}

/// Size of a block, in bytes: small enough that a dozen in flight do not matter, large enough that segments, which know nothing of
/// those before them, take 1 % more than with the size of 1 MiB.
pub(crate) const BLOCK_BYTES: usize = 512 << 10;

/// Destination of the bytes of one object.
pub type Sink = Box<dyn Write + Send>;

/// Destinations of one pass over the catalog, by the kind of the object: an encoding of `all.json`, or [`Kind::Blob`] for the layer of
/// the catalog's image, a tar archive in one gzip member. What has no sink is not made.
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
    /// Reads all Shards once, in order, and writes the whole catalog in each encoding that has a sink, on threads of its own.
    ///
    /// # Errors
    /// [`RenderError::Damaged`] and [`RenderError::Unreadable`] for stored Shards that cannot be used,
    /// [`RenderError::Sink`], [`RenderError::Scratch`].
    pub fn write_all(&self, mut sinks: Sinks) -> Result<AllFacts, RenderError> {
        let size = self.shards.iter().map(|shard| shard.lines.size).sum();
        let settings = &self.context.settings;
        thread::scope(|scope| {
            let mut fan_out = FanOut::default();
            let [zstd, gzip, identity, layer] = MADE.map(|kind| sinks.remove(&kind));
            let zstd = zstd.map(|sink| {
                let write = move |blocks| write_zstd(blocks, settings.zstd_level, size, sink);
                fan_out.spawn(scope, write)
            });
            let identity = identity.map(|sink| {
                let write = |blocks| write_blocks(blocks, HashingWriter::new(sink))?.finish();
                fan_out.spawn(scope, write)
            });
            let is_framed = layer.is_some();
            let gzip = (gzip.is_some() || is_framed).then(|| {
                let threads = thread::available_parallelism().map_or(1, NonZero::get);
                let (lanes, segments) = gzip::lanes(scope, threads, settings.gzip_level);
                fan_out.gzip = Some(lanes);
                scope.spawn(move || gzip::write(&segments, gzip, layer))
            });
            let read = match self.feed(fan_out, is_framed) {
                // The writers then ended too soon: their errors are a consequence.
                Err(error) if !matches!(error, RenderError::Scratch(_)) => return Err(error),
                read => read,
            };
            // A writer that failed made the reading stop: its error is the cause.
            let zstd = join(zstd, "all.json.zst")?;
            let gzip = gzip.map(finish).transpose()?.unwrap_or_default();
            let identity = join(identity, "all.json")?;
            let made = MADE.into_iter().zip([zstd, gzip.all, identity, gzip.layer]);
            Ok(AllFacts {
                content_hash: read?,
                size,
                made: made.filter_map(|(kind, digest)| Some((kind, digest?))).collect(),
                diff_id: gzip.diff_id,
            })
        })
    }

    fn feed(&self, fan_out: FanOut, framed: bool) -> Result<Sha256, RenderError> {
        let mut blocks = BlockWriter {
            layer: framed.then(oci::Layer::default),
            block: Vec::with_capacity(BLOCK_BYTES),
            fan_out,
            ..BlockWriter::default()
        };
        let mut published = self.published_segments(&blocks.fan_out)?;
        for shard in &self.shards {
            self.context.check_budget()?;
            blocks.begin(shard);
            if let Some(published) = &mut published
                && in_published(published.rest.sha256, published.find(shard))?
            {
                self.feed_segment(shard, published, &mut blocks)?;
            } else {
                self.feed_shard(shard, &mut blocks)?;
            }
            blocks.send().map_err(RenderError::Scratch)?;
        }
        if let Some(published) = published {
            in_published(published.rest.sha256, published.end())?;
        }
        blocks.end().map_err(RenderError::Scratch)
    }

    /// Feeds a Shard from a published `all.json.gz`, whose lines must have the checksum of the stored Shard.
    fn feed_segment(
        &self,
        shard: &Shard,
        published: &mut PublishedSegments,
        blocks: &mut BlockWriter,
    ) -> Result<(), RenderError> {
        // A damaged Shard is found when it is published again, though only its checksum is needed.
        let stored = shard.body.read(&self.context)?;
        // The content hash takes another pass over the lines; a second sha256 would cost as much as decompressing them.
        let mut check = Xxh64::new(0);
        let fed = published.blocks(shard.lines.size, |block| {
            check.update(&block.lines);
            // A Package may have gigabytes.
            self.check_budget().map_err(io::Error::other)?;
            blocks.add_block(block)
        });
        self.context.check_budget()?;
        in_published(published.rest.sha256, fed)?;
        if stored.last_chunk() != Some(&(check.digest() as u32).to_le_bytes()) {
            return Err(RenderError::Damaged(published.rest.sha256));
        }
        Ok(())
    }

    fn published_segments(&self, fan_out: &FanOut) -> Result<Option<PublishedSegments>, RenderError> {
        let is_useful = fan_out.gzip.is_some() && self.shards.iter().any(Shard::is_stored);
        let published = is_useful.then(|| self.context.stored.gzip()).flatten();
        let begin = |published: PublishedGzip| in_published(published.sha256, PublishedSegments::begin(published));
        published.map(begin).transpose()
    }

    /// Decompresses a Shard. Bytes of the store are hashed as well, before and after decompression.
    fn feed_shard(&self, shard: &Shard, blocks: &mut BlockWriter) -> Result<(), RenderError> {
        let compressed = shard.body.read(&self.context)?;
        let mut check = Hasher::new();
        let copied = copy_lines(&compressed, |lines| {
            if shard.is_stored() {
                check.update(lines);
            }
            // A Package may have gigabytes.
            self.check_budget().map_err(io::Error::other)?;
            blocks.add(lines)
        });
        self.context.check_budget()?;
        match copied {
            Err(error) if !shard.is_stored() || error.kind() == STOPPED => Err(RenderError::Scratch(error)),
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

type Writer<'scope> = ScopedJoinHandle<'scope, io::Result<ObjectDigest>>;

fn write_zstd(blocks: Receiver<Arc<Block>>, level: i32, size: u64, sink: Sink) -> io::Result<ObjectDigest> {
    let mut encoder = encoder(HashingWriter::new(sink), level, size)?;
    // Versions of a package repeat each other, some megabytes apart.
    encoder.window_log(ZSTD_WINDOW_LOG_MAX)?;
    encoder.long_distance_matching(true)?;
    write_blocks(blocks, encoder)?.finish()?.finish()
}

fn write_blocks<W: Write>(blocks: Receiver<Arc<Block>>, mut sink: W) -> io::Result<W> {
    for block in blocks {
        sink.write_all(&block)?;
    }
    Ok(sink)
}

fn join(writer: Option<Writer<'_>>, part: &'static str) -> Result<Option<ObjectDigest>, RenderError> {
    let finished = writer.map(finish).transpose();
    finished.map_err(|source| RenderError::Sink { part, source })
}

fn finish<T>(writer: ScopedJoinHandle<'_, T>) -> T {
    writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Kind of the error for a writer that has stopped. Its own error says why, and what was read is not at fault.
const STOPPED: io::ErrorKind = io::ErrorKind::BrokenPipe;

/// Sends each block to all writers.
#[derive(Default)]
struct FanOut {
    plain: Vec<SyncSender<Arc<Block>>>,
    gzip: Option<Lanes>,
}

impl FanOut {
    /// Starts a writer of the plain blocks.
    fn spawn<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        write: impl FnOnce(Receiver<Arc<Block>>) -> io::Result<ObjectDigest> + Send + 'scope,
    ) -> Writer<'scope> {
        let (writer, blocks) = sync_channel(1);
        self.plain.push(writer);
        scope.spawn(move || write(blocks))
    }

    fn send(&mut self, piece: Piece) -> io::Result<()> {
        let plain = self.plain.iter().all(|writer| writer.send(piece.block.clone()).is_ok());
        if plain && self.gzip.as_mut().is_none_or(|lanes| lanes.send(piece)) {
            return Ok(());
        }
        Err(io::Error::new(STOPPED, "a writer has stopped"))
    }
}

/// Collects lines into blocks.
#[derive(Default)]
struct BlockWriter {
    hasher: Hasher,
    /// The tar archive around the lines, if the layer has a sink.
    layer: Option<oci::Layer>,
    frame: Vec<u8>,
    block: Block,
    deflated: Option<Vec<u8>>,
    fan_out: FanOut,
}

impl BlockWriter {
    fn begin(&mut self, shard: &Shard) {
        if let Some(layer) = &mut self.layer {
            self.frame.extend(layer.before(&shard.name, shard.lines.size));
        }
    }

    fn add(&mut self, mut lines: &[u8]) -> io::Result<()> {
        self.hasher.update(lines);
        while !lines.is_empty() {
            let (now, later) = lines.split_at(lines.len().min(BLOCK_BYTES - self.block.len()));
            self.block.extend_from_slice(now);
            lines = later;
            if self.block.len() == BLOCK_BYTES {
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

    fn end(mut self) -> io::Result<Sha256> {
        if let Some(layer) = self.layer.take() {
            self.frame.extend(layer.end());
        }
        self.send()?;
        Ok(self.hasher.finish())
    }

    fn send(&mut self) -> io::Result<()> {
        if self.block.is_empty() && self.frame.is_empty() {
            return Ok(());
        }
        let block = mem::replace(&mut self.block, Vec::with_capacity(BLOCK_BYTES));
        self.fan_out.send(Piece {
            frame: mem::take(&mut self.frame),
            block: Arc::new(block),
            deflated: self.deflated.take(),
        })
    }
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
