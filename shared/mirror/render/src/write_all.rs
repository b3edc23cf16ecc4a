use std::io::{self, Read};
use std::thread::{self, ScopedJoinHandle};
use std::{mem, num::NonZero};

use model::{Encoding, Hasher, Kind, ObjectDigest, Sha256};

use crate::block::{BLOCK_BYTES, Block, Piece, PublishedSegment, Sinks};
use crate::gzip::{self, Lanes};
use crate::outputs::{AllFacts, Outputs};
use crate::{PublishedGzip, RenderError, Rendering, Shard};

/// Kind of `all.json`, whose digest is that of the content.
const IDENTITY: Kind = Kind::All(Encoding::Identity);

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
            let published = match outputs.has_segments() {
                true => self.published()?,
                false => None,
            };
            let mut blocks = BlockWriter {
                hasher: Hasher::new(),
                layer: outputs.has_layer().then(oci::Layer::default),
                frame: Vec::new(),
                published,
                sizes: Vec::new().into_iter(),
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
                segments: written.segments,
            })
        })
    }

    /// Opens a published `all.json.gz`, if it may have segments of some Shards.
    fn published(&self) -> Result<Option<PublishedGzip>, RenderError> {
        if !self.shards.iter().any(Shard::is_stored) {
            return Ok(None);
        }
        let Some(mut published) = self.context.stored.gzip() else {
            return Ok(None);
        };
        let header = published.read_header();
        header.map_err(unusable(published.sha256()))?;
        Ok(Some(published))
    }

    fn feed(&self, blocks: &mut BlockWriter) -> Result<(), RenderError> {
        for shard in &self.shards {
            self.context.check_budget()?;
            self.feed_shard(shard, blocks)?;
        }
        blocks.end()
    }

    /// Decompresses a Shard. Lines of the store are compared with those of a published segment, or
    /// hashed if there is none.
    fn feed_shard(&self, shard: &Shard, blocks: &mut BlockWriter) -> Result<(), RenderError> {
        let has_segments = blocks.begin(shard)?;
        let compressed = self.context.read(&shard.body)?;
        let undecoded = |error| match shard.is_stored() {
            true => RenderError::Damaged(shard.stored.sha256),
            false => RenderError::Scratch(error),
        };
        let mut lines = zstd::Decoder::with_buffer(&compressed[..]).map_err(undecoded)?;
        let is_hashed = shard.is_stored() && !has_segments;
        let mut hasher = Hasher::new();
        let mut size = 0;
        loop {
            let block = read_block(&mut lines).map_err(undecoded)?;
            if block.is_empty() {
                break;
            }
            // A Package may have gigabytes.
            self.check_budget()?;
            size += block.len() as u64;
            if is_hashed {
                hasher.update(&block);
            }
            blocks.add(block)?;
        }
        if size != shard.lines.size || is_hashed && hasher.finish() != shard.lines.sha256 {
            return Err(RenderError::Damaged(shard.stored.sha256));
        }
        Ok(())
    }
}

/// Reads the next block. The last one has fewer bytes, or none.
fn read_block(lines: &mut impl Read) -> io::Result<Block> {
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    lines.take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
    Ok(block)
}

/// Names the published object in the error of reading it.
fn unusable(sha256: Sha256) -> impl Fn(io::Error) -> RenderError {
    move |source| match source.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => RenderError::Damaged(sha256),
        _ => RenderError::Unreadable { sha256, source },
    }
}

fn join<T>(writer: ScopedJoinHandle<'_, T>) -> T {
    writer
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sends blocks to the lanes.
struct BlockWriter {
    hasher: Hasher,
    /// The tar archive around the lines, if the layer has a sink.
    layer: Option<oci::Layer>,
    /// Tar headers that go before the next block.
    frame: Vec<u8>,
    published: Option<PublishedGzip>,
    /// Sizes of the published segments of the Shard that come next.
    sizes: std::vec::IntoIter<u32>,
    lanes: Lanes,
    /// True if a piece could not be sent, because the writer has stopped.
    has_stopped: bool,
}

impl BlockWriter {
    /// Begins a Shard. Returns true if a published object has its segments.
    fn begin(&mut self, shard: &Shard) -> Result<bool, RenderError> {
        if let Some(layer) = &mut self.layer {
            let header = layer.before(&shard.name, shard.lines.size);
            self.frame.extend(header);
        }
        let Some(published) = &mut self.published else {
            return Ok(false);
        };
        let found = published.find(&shard.name, &shard.lines);
        let sizes = found.map_err(unusable(published.sha256()))?;
        let has_segments = sizes.is_some();
        self.sizes = sizes.unwrap_or_default().into_iter();
        Ok(has_segments)
    }

    /// Adds the next block of the Shard.
    fn add(&mut self, block: Block) -> Result<(), RenderError> {
        self.hasher.update(&block);
        let mut segment = None;
        if let Some(published) = &mut self.published
            && let Some(size) = self.sizes.next()
        {
            let object = published.sha256();
            let bytes = published.segment(size).map_err(unusable(object))?;
            segment = Some(PublishedSegment { bytes, object });
        }
        self.send(block, segment)
    }

    /// Ends the catalog.
    fn end(&mut self) -> Result<(), RenderError> {
        if let Some(published) = self.published.take() {
            let sha256 = published.sha256();
            published.end().map_err(unusable(sha256))?;
        }
        if let Some(layer) = self.layer.take() {
            self.frame.extend(layer.end());
            self.send(Block::new(), None)?;
        }
        Ok(())
    }

    fn send(
        &mut self,
        block: Block,
        published: Option<PublishedSegment>,
    ) -> Result<(), RenderError> {
        let piece = Piece {
            frame: mem::take(&mut self.frame),
            block,
            published,
        };
        if self.lanes.send(piece) {
            return Ok(());
        }
        self.has_stopped = true;
        let stopped = io::Error::new(io::ErrorKind::BrokenPipe, "a writer has stopped");
        Err(RenderError::Scratch(stopped))
    }
}
