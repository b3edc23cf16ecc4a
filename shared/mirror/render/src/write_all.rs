use std::io;
use std::thread::{self, ScopedJoinHandle};
use std::{collections::BTreeMap, mem, num::NonZero};

use model::{Encoding, Hasher, Kind, ObjectDigest, Sha256};
use xxhash_rust::xxh64::Xxh64;

use crate::block::{BLOCK_BYTES, Block, Piece, Sinks, fill};
use crate::gzip::{self, Lanes};
use crate::inflate::{DeflatedBlock, PublishedGzip, PublishedSegments};
use crate::outputs::Outputs;
use crate::{RenderError, Rendering, Shard, shard::copy_lines};

/// Kind of `all.json`, whose digest is that of the content.
const IDENTITY: Kind = Kind::All(Encoding::Identity);

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

impl Rendering {
    /// Reads all Shards once, in order, and writes the whole catalog in each encoding that has a
    /// sink. Other threads compress and write.
    ///
    /// # Errors
    /// [`RenderError::Damaged`] and [`RenderError::Unreadable`] for stored Shards that cannot be
    /// used, [`RenderError::Sink`], [`RenderError::Scratch`].
    pub fn write_all(&self, sinks: Sinks) -> Result<AllFacts, RenderError> {
        let size = self.shards.iter().map(|shard| shard.lines.size).sum();
        let settings = &self.context.settings;
        let has_identity = sinks.contains_key(&IDENTITY);
        let outputs = Outputs::begin(sinks, size, settings)?;
        thread::scope(|scope| {
            let threads = thread::available_parallelism().map_or(1, NonZero::get);
            let level = outputs.has_segments().then_some(settings.gzip_level);
            let (lanes, segments) = gzip::lanes(scope, threads, level);
            let mut blocks = BlockWriter {
                hasher: Hasher::new(),
                layer: outputs.has_layer().then(oci::Layer::default),
                frame: Vec::new(),
                block: Vec::with_capacity(BLOCK_BYTES),
                deflated: None,
                has_segments: outputs.has_segments(),
                lanes,
                has_stopped: false,
            };
            let writer = scope.spawn(move || outputs.write(&segments));
            let fed = self.feed(&mut blocks);
            let content_hash = blocks.hasher.finish();
            // The writer ends with the last piece.
            drop(blocks.lanes);
            let mut written = match (fed, join(writer)) {
                (Ok(()), written) => written?,
                // A writer that failed stops the reading.
                (Err(_), Err(cause)) if blocks.has_stopped => return Err(cause),
                // A reading that failed leaves the writer with too few lines.
                (Err(cause), _) => return Err(cause),
            };
            if has_identity {
                let sha256 = content_hash;
                written.made.insert(IDENTITY, ObjectDigest { size, sha256 });
            }
            Ok(AllFacts {
                content_hash,
                size,
                made: written.made,
                diff_id: written.diff_id,
            })
        })
    }

    fn feed(&self, blocks: &mut BlockWriter) -> Result<(), RenderError> {
        let mut published = self.published_segments(blocks)?;
        for shard in &self.shards {
            self.context.check_budget()?;
            let compressed = shard.body.read(&self.context)?;
            blocks.begin(shard);
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
        let is_useful = blocks.has_segments && self.shards.iter().any(Shard::is_stored);
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

fn join<T>(writer: ScopedJoinHandle<'_, T>) -> T {
    writer
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Kind of the error for a writer that has stopped. Its own error says why, and what was read is
/// not at fault.
const STOPPED: io::ErrorKind = io::ErrorKind::BrokenPipe;

/// Collects lines into blocks, and sends each to the lanes.
struct BlockWriter {
    hasher: Hasher,
    /// The tar archive around the lines, if the layer has a sink.
    layer: Option<oci::Layer>,
    frame: Vec<u8>,
    block: Block,
    deflated: Option<Vec<u8>>,
    /// True if blocks are deflated.
    has_segments: bool,
    lanes: Lanes,
    /// True if a piece could not be sent, because the writer has stopped.
    has_stopped: bool,
}

impl BlockWriter {
    fn begin(&mut self, shard: &Shard) {
        if let Some(layer) = &mut self.layer {
            self.frame
                .extend(layer.before(&shard.name, shard.lines.size));
        }
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
        let piece = Piece {
            frame: mem::take(&mut self.frame),
            block: mem::replace(&mut self.block, Vec::with_capacity(BLOCK_BYTES)),
            deflated: self.deflated.take(),
        };
        if self.lanes.send(piece) {
            return Ok(());
        }
        self.has_stopped = true;
        Err(io::Error::new(STOPPED, "a writer has stopped"))
    }
}
