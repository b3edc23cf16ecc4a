use std::{
    io::{self, Write},
    mem,
    num::NonZero,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, Scope, ScopedJoinHandle},
};

use layout::{Hasher, Sha256, Stored};

use crate::{
    RenderError, Rendering, Shard,
    deflate::{self, Lanes},
    gzip::{self, LayerFacts},
    measured::Measured,
    shard::{copy_lines, encoder},
};

/// Lines of one Shard: [`BLOCK_BYTES`] of them, or the rest, because the gzip members depend on it.
pub(crate) type Block = Vec<u8>;

/// A block on its way to the compressors.
#[derive(Clone)]
pub(crate) struct Piece {
    /// What goes before it in the layer.
    pub(crate) frame: Vec<u8>,
    pub(crate) block: Arc<Block>,
    /// Whether it is the first of its Shard.
    pub(crate) begins: bool,
}

/// Small enough that a dozen in flight do not matter, large enough that a dictionary of 32 kB costs nothing.
const BLOCK_BYTES: usize = 512 << 10;

/// Where the forms of the catalog go. Those without a sink are not made.
#[derive(Default)]
pub struct Sinks {
    /// For `all.json.zst`.
    pub zstd: Option<Box<dyn Write + Send>>,
    /// For `all.json.gz`.
    pub gzip: Option<Box<dyn Write + Send>>,
    /// For `all.json`.
    pub identity: Option<Box<dyn Write + Send>>,
    /// For the layer of the catalog's image: a tar archive in one gzip member.
    pub layer: Option<Box<dyn Write + Send>>,
}

/// What the pass over the whole catalog found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllFacts {
    /// The sha256 of `all.json`.
    pub content_hash: Sha256,
    /// The bytes of `all.json`.
    pub size: u64,
    /// How many Metas each Shard has, in their order.
    pub metas: Vec<u64>,
    /// `all.json.zst` as it was written.
    pub zstd: Option<Stored>,
    /// `all.json.gz` as it was written.
    pub gzip: Option<Stored>,
    /// `all.json` as it was written.
    pub identity: Option<Stored>,
    /// The layer of the catalog's image as it was written.
    pub layer: Option<LayerFacts>,
}

impl Rendering {
    /// Reads all Shards once, in order, and writes the forms of the catalog, each on its own threads.
    ///
    /// # Errors
    /// [`RenderError::Damaged`] and [`RenderError::Published`] for published Shards that cannot be relied on,
    /// [`RenderError::Sink`], [`RenderError::Scratch`].
    pub fn write_all(&self, sinks: Sinks) -> Result<AllFacts, RenderError> {
        let size = self.shards.iter().map(|shard| shard.size).sum();
        thread::scope(|scope| {
            let mut taps = Taps::default();
            let zstd = sinks.zstd.map(|sink| self.spawn_zstd(scope, &mut taps, size, sink));
            let framed = sinks.layer.is_some();
            let gzip = self.spawn_gzip(scope, &mut taps, sinks.gzip, sinks.layer);
            let identity = sinks.identity.map(|sink| spawn_identity(scope, &mut taps, sink));
            let read = match self.pour(taps, framed) {
                // The writers ended too soon then, and whatever they say of that, it is not the cause.
                Err(error @ (RenderError::Damaged { .. } | RenderError::Published { .. })) => return Err(error),
                read => read,
            };
            // A writer that failed made the reading stop: its error is the cause.
            let zstd = join(zstd, "all.json.zst")?;
            let gzip = gzip.map_or_else(|| Ok(gzip::Written::default()), finish)?;
            let identity = join(identity, "all.json")?;
            let metas = self.shards.iter().map(|shard| shard.metas.len() as u64).collect();
            Ok(AllFacts {
                content_hash: read?,
                size,
                metas,
                zstd,
                gzip: gzip.all,
                identity,
                layer: gzip.layer,
            })
        })
    }

    fn pour(&self, taps: Taps, framed: bool) -> Result<Sha256, RenderError> {
        let mut pouring = Pouring {
            hasher: Hasher::new(),
            layer: framed.then(oci::Layer::new),
            frame: Vec::new(),
            begins: true,
            block: Vec::with_capacity(BLOCK_BYTES),
            taps,
        };
        for shard in &self.shards {
            pouring.begin(shard);
            self.pour_shard(shard, &mut pouring)?;
            pouring.send().map_err(RenderError::Scratch)?;
        }
        pouring.end().map_err(RenderError::Scratch)
    }

    /// What was just made is only decompressed; what comes from the store is checked as well.
    fn pour_shard(&self, shard: &Shard, pouring: &mut Pouring) -> Result<(), RenderError> {
        let compressed = shard.compressed(&self.shop)?;
        if !shard.is_published() {
            return copy_lines(&compressed, |lines| pouring.add(lines)).map_err(RenderError::Scratch);
        }
        let mut check = Hasher::new();
        let copied = copy_lines(&compressed, |lines| {
            check.update(lines);
            pouring.add(lines)
        });
        if copied.is_err() || check.finish() != shard.sha256 {
            return Err(RenderError::Damaged { sha256: shard.sha256 });
        }
        Ok(())
    }

    fn spawn_zstd<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        taps: &mut Taps,
        size: u64,
        sink: Box<dyn Write + Send>,
    ) -> Writer<'scope> {
        let blocks = taps.add_plain();
        let level = self.shop.settings.zstd_level;
        scope.spawn(move || {
            let encoder = encoder(Measured::new(sink), level, size)?;
            write_blocks(blocks, encoder)?.finish()?.finish()
        })
    }

    fn spawn_gzip<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        taps: &mut Taps,
        all: Option<Box<dyn Write + Send>>,
        layer: Option<Box<dyn Write + Send>>,
    ) -> Option<ScopedJoinHandle<'scope, Result<gzip::Written, RenderError>>> {
        if all.is_none() && layer.is_none() {
            return None;
        }
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let (lanes, segments) = deflate::lanes(scope, threads, self.shop.settings.gzip_level);
        taps.gzip = Some(lanes);
        Some(scope.spawn(move || gzip::write(&segments, all, layer)))
    }
}

type Writer<'scope> = ScopedJoinHandle<'scope, io::Result<Stored>>;

fn spawn_identity<'scope>(
    scope: &'scope Scope<'scope, '_>,
    taps: &mut Taps,
    sink: Box<dyn Write + Send>,
) -> Writer<'scope> {
    let blocks = taps.add_plain();
    scope.spawn(move || write_blocks(blocks, Measured::new(sink))?.finish())
}

fn write_blocks<W: Write>(blocks: Receiver<Arc<Block>>, mut sink: W) -> io::Result<W> {
    for block in blocks {
        sink.write_all(&block)?;
    }
    Ok(sink)
}

fn join(writer: Option<Writer<'_>>, form: &'static str) -> Result<Option<Stored>, RenderError> {
    let Some(writer) = writer else { return Ok(None) };
    finish(writer)
        .map(Some)
        .map_err(|source| RenderError::Sink { form, source })
}

fn finish<T>(writer: ScopedJoinHandle<'_, T>) -> T {
    writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The writers that each block goes to.
#[derive(Default)]
struct Taps {
    plain: Vec<SyncSender<Arc<Block>>>,
    gzip: Option<Lanes>,
}

impl Taps {
    fn add_plain(&mut self) -> Receiver<Arc<Block>> {
        let (tap, blocks) = sync_channel(1);
        self.plain.push(tap);
        blocks
    }

    fn send(&mut self, piece: Piece) -> io::Result<()> {
        let plain = self.plain.iter().all(|tap| tap.send(piece.block.clone()).is_ok());
        if plain && self.gzip.as_mut().is_none_or(|lanes| lanes.send(piece)) {
            return Ok(());
        }
        Err(io::Error::other("a writer has stopped"))
    }
}

/// Collects lines into blocks.
struct Pouring {
    hasher: Hasher,
    /// The archive around the lines, if anybody wants it.
    layer: Option<oci::Layer>,
    frame: Vec<u8>,
    begins: bool,
    block: Block,
    taps: Taps,
}

impl Pouring {
    fn begin(&mut self, shard: &Shard) {
        self.begins = true;
        if let Some(layer) = &mut self.layer {
            self.frame.extend(layer.before(&shard.name, shard.size));
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
        self.taps.send(Piece {
            frame: mem::take(&mut self.frame),
            block: Arc::new(block),
            begins: mem::replace(&mut self.begins, false),
        })
    }
}
