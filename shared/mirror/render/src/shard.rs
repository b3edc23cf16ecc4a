use std::io::{self, Read, Write};
use std::{ops::Range, sync::Arc};

use fbc::DocumentPosition;
use model::{Content, Hasher, IndexedMeta, ObjectDigest, Sha256, ShardRef, ZSTD_WINDOW_LOG_MAX};

use crate::context::{ChunkPlace, RenderContext};
use crate::fragment::{CompressedLines, Fragment};
use crate::known::{PartReader, hashed_chunks, published};
use crate::{KnownChunks, PublishedGzip, RenderError};

/// One Package as one run of canonical lines.
#[derive(Debug)]
pub struct Shard {
    /// Name of the Package; empty for the global group.
    pub name: String,
    /// Hash and size of the uncompressed lines.
    pub lines: Content,
    /// Hash and size of the compressed bytes, under which the Shard is stored.
    pub stored: ObjectDigest,
    /// Position of each Meta in the lines.
    pub metas: Vec<IndexedMeta>,
    /// Origin of each Meta; empty unless [`crate::RenderSettings::positions`] is set.
    pub places: Vec<MetaPlace>,
    /// Hashed chunks that the lines come from, and the position of those of each.
    pub(crate) chunks: Vec<(Arc<ChunkPlace>, Range<u64>)>,
    pub(crate) body: CompressedLines,
}

/// Origin of a Meta.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaPlace {
    /// Path of the file, relative to the FBC root.
    pub path: Arc<str>,
    /// Position of the document in the file.
    pub position: DocumentPosition,
}

impl Shard {
    /// True if the store already has a Shard with these lines.
    pub const fn is_stored(&self) -> bool {
        matches!(self.body, CompressedLines::Stored(_))
    }

    pub(crate) fn of_ref(shard: &ShardRef) -> Self {
        Self {
            name: shard.name.clone(),
            lines: shard.lines,
            stored: shard.stored,
            metas: Vec::new(),
            places: Vec::new(),
            chunks: Vec::new(),
            body: CompressedLines::Stored(shard.stored),
        }
    }

    /// Joins the fragments of one Package, which are in order.
    pub(crate) fn join(
        fragments: Vec<Fragment>,
        context: &RenderContext,
    ) -> Result<Self, RenderError> {
        let name = fragments.first().map(|first| first.group.to_string());
        // Nearly every Package is one fragment, whose bytes are the Shard already.
        let whole = match &fragments[..] {
            [one] => one.whole.map(|lines| (lines, one.body.clone())),
            _ => None,
        };
        let (lines, body) = match published(&fragments).or(whole) {
            Some(whole) => whole,
            None => join_bodies(&fragments, context)?,
        };
        let stored = match &body {
            CompressedLines::Stored(stored) => *stored,
            CompressedLines::New(_) => ObjectDigest::of(&body.read(context)?),
        };
        Ok(Self {
            name: name.unwrap_or_default(),
            lines,
            stored,
            places: places(&fragments),
            chunks: hashed_chunks(&fragments),
            metas: metas(fragments),
            body,
        })
    }
}

/// Returns the entries of all fragments, their offsets counted from the start of the Shard. They
/// are large, and moved.
fn metas(fragments: Vec<Fragment>) -> Vec<IndexedMeta> {
    let mut all = Vec::new();
    let mut start = 0;
    for fragment in fragments {
        let mut metas = Arc::unwrap_or_clone(fragment.metas);
        metas.iter_mut().for_each(|meta| meta.offset += start);
        start += fragment.size;
        all.append(&mut metas);
    }
    all
}

fn places(fragments: &[Fragment]) -> Vec<MetaPlace> {
    let mut places = Vec::new();
    for fragment in fragments {
        for position in &*fragment.positions {
            places.push(MetaPlace {
                path: fragment.place.path.clone(),
                position: *position,
            });
        }
    }
    places
}

fn join_bodies(
    fragments: &[Fragment],
    context: &RenderContext,
) -> Result<(Content, CompressedLines), RenderError> {
    let size = fragments.iter().map(|fragment| fragment.size).sum();
    let mut hasher = Hasher::new();
    // To decompress the parts twice costs little beside the compression that most updates need not.
    let hashes_first = !context.stored.is_empty();
    if hashes_first {
        copy_all(fragments, context, &mut |block| {
            hasher.update(block);
            Ok(())
        })?;
        let sha256 = hasher.clone().finish();
        if let Some(stored) = context.stored.stored(&sha256) {
            return Ok((Content { sha256, size }, CompressedLines::Stored(stored)));
        }
    }
    let mut encoder =
        encoder(Vec::new(), context.settings.shard_level, size).map_err(RenderError::Scratch)?;
    // Versions of a package repeat each other, some megabytes apart: 4 % smaller than with the
    // window of the level.
    encoder
        .window_log(ZSTD_WINDOW_LOG_MAX)
        .map_err(RenderError::Scratch)?;
    copy_all(fragments, context, &mut |block| {
        if !hashes_first {
            hasher.update(block);
        }
        encoder.write_all(block)
    })?;
    let frame = encoder.finish().map_err(RenderError::Scratch)?;
    let kept = context.scratch.keep(&frame).map_err(RenderError::Scratch)?;
    let body = CompressedLines::New(kept);
    let sha256 = hasher.finish();
    Ok((Content { sha256, size }, body))
}

/// Passes the lines of all fragments to `sink`, block by block.
fn copy_all(
    fragments: &[Fragment],
    context: &RenderContext,
    sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), RenderError> {
    let mut parts = PartReader::default();
    for fragment in fragments {
        // A Package may have gigabytes.
        context.check_budget()?;
        if let Some(part) = &fragment.published {
            parts.read(part, context, &mut *sink)?;
            continue;
        }
        copy_lines(&fragment.body.read(context)?, &mut *sink).map_err(RenderError::Scratch)?;
    }
    Ok(())
}

pub(crate) fn load(
    shards: &dyn StoredShards,
    stored: &ObjectDigest,
) -> Result<Vec<u8>, RenderError> {
    shards
        .load(stored)
        .map_err(|source| RenderError::Unreadable {
            sha256: stored.sha256,
            source,
        })
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

/// Shards that the store already has. Called from worker threads, so an implementation may block.
pub trait StoredShards: Send + Sync {
    /// Returns the stored object of the Shard with these uncompressed lines, if there is one.
    fn stored(&self, lines: &Sha256) -> Option<ObjectDigest>;

    /// True if there are none. Default: false.
    fn is_empty(&self) -> bool {
        false
    }

    /// Reads the stored bytes of a Shard: one zstd frame. An implementation compares their hash
    /// with `stored`.
    ///
    /// # Errors
    /// The error of the store, and bytes with another hash.
    fn load(&self, stored: &ObjectDigest) -> io::Result<Vec<u8>>;

    /// Opens the `all.json.gz` of a state that shares Shards with the next one. `None` if there is
    /// none, if its segments were not recorded, or if it cannot be opened: it only saves work.
    /// Default: `None`.
    fn gzip(&self) -> Option<PublishedGzip> {
        None
    }

    /// Returns the chunks that need not be parsed, where chunks are hashed for that:
    /// [`crate::Rendering::chunks`] then has those of the rendering. Default: `None`.
    fn known_chunks(&self) -> Option<&KnownChunks> {
        None
    }
}

/// An empty store.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStoredShards;

impl StoredShards for NoStoredShards {
    fn stored(&self, _: &Sha256) -> Option<ObjectDigest> {
        None
    }

    fn is_empty(&self) -> bool {
        true
    }

    fn load(&self, _: &ObjectDigest) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}
