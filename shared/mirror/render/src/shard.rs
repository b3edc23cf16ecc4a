use std::io::{self, Write};
use std::{ops::Range, sync::Arc};

use fbc::DocumentPosition;
use model::{Content, Hasher, IndexedMeta, ObjectDigest, ShardRef, ZSTD_WINDOW_LOG_MAX};

use crate::RenderError;
use crate::block::{copy_lines, encoder};
use crate::context::RenderContext;
use crate::fragment::{ChunkPlace, CompressedLines, Fragment};
use crate::parts::PartReader;

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
            CompressedLines::New(_) => ObjectDigest::of(&context.read(&body)?),
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
        copy_lines(&context.read(&fragment.body)?, &mut *sink).map_err(RenderError::Scratch)?;
    }
    Ok(())
}

/// Returns the hashed chunks that the lines of a Package come from, and the position of those of
/// each.
fn hashed_chunks(fragments: &[Fragment]) -> Vec<(Arc<ChunkPlace>, Range<u64>)> {
    let mut end = 0;
    let chunks = fragments.iter().map(|fragment| {
        let start = end;
        end += fragment.size;
        (fragment.place.clone(), start..end)
    });
    chunks.filter(|(place, _)| place.hash.is_some()).collect()
}

/// Returns the published Shard that the fragments of a Package make up; `None` if they are other
/// lines.
fn published(fragments: &[Fragment]) -> Option<(Content, CompressedLines)> {
    let (shard, _) = &*fragments.first()?.published.as_ref()?.shard;
    let mut end = 0;
    for fragment in fragments {
        let part = fragment.published.as_ref()?;
        if part.range.start != end {
            return None;
        }
        end = part.range.end;
    }
    if end != shard.lines.size {
        return None;
    }
    Some((shard.lines, CompressedLines::Stored(shard.stored)))
}
