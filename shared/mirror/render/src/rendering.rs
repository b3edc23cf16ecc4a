use std::io::{self, BufWriter, Read};
use std::{collections::BTreeMap, sync::Arc};

use fbc::Chunks;
use model::{
    AllFormats, CatalogImage, Content, DOCUMENT_WINDOW_LOG, Document, Encoding, Index, IndexedMeta,
    IndexedShard, Kind, ObjectDigest, RENDER_VERSION, ShardRef, Snapshot,
};
use work::Budget;

use crate::block::{copy_lines, encoder};
use crate::stored::load;
use crate::{
    AllFacts, ChunkLines, HashingWriter, RenderError, RenderSettings, Shard, StoredShards,
    context::RenderContext, fragment::indexed, known::RECORDED_PARTS,
};

/// A rendered catalog: its Shards in the order in which they make up `all.json`.
pub struct Rendering {
    pub(crate) shards: Vec<Shard>,
    pub(crate) context: Arc<RenderContext>,
}

impl Rendering {
    /// Creates a Rendering from a Snapshot instead of FBC files; `shards` reads its Shards.
    /// [`Rendering::write_all`] then writes the same bytes as before, if the compressors are the
    /// same. It counts no Metas before [`Rendering::read_metas`].
    pub fn of_snapshot(
        snapshot: &Snapshot,
        shards: Arc<dyn StoredShards>,
        settings: RenderSettings,
    ) -> Self {
        Self {
            shards: snapshot.shards().map(Shard::of_ref).collect(),
            context: Arc::new(RenderContext::new(settings, shards)),
        }
    }

    /// Reads the Metas of all Shards, so that [`Rendering::index`] returns the index again.
    ///
    /// # Errors
    /// [`RenderError::Damaged`] and [`RenderError::Unreadable`] for Shards that cannot be used.
    pub fn read_metas(&mut self) -> Result<(), RenderError> {
        let context = &self.context;
        self.shards.iter_mut().try_for_each(|shard| {
            let damaged = || RenderError::Damaged(shard.stored.sha256);
            let compressed = load(&*context.stored, &shard.stored)?;
            let lines = zstd::Decoder::with_buffer(&compressed[..]).map_err(|_| damaged())?;
            shard.metas = index_lines(lines, shard.lines).ok_or_else(damaged)?;
            Ok(())
        })
    }

    /// Returns the Shards: the global group first if there is one, then the Packages in byte order
    /// of their names.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Returns where the lines of each chunk are, if chunks were hashed. A chunk may be in several
    /// files: those of one of them count. Chunks beyond a number of parts are left out.
    pub fn chunks(&self) -> ChunkLines {
        let mut chunks = BTreeMap::<_, Vec<_>>::new();
        for shard in &self.shards {
            for (place, range) in &shard.chunks {
                let lines = (shard.lines.sha256, range.clone());
                chunks.entry(place).or_default().push(lines);
            }
        }
        let mut left = RECORDED_PARTS;
        let recorded = chunks.into_iter().filter_map(|(place, lines)| {
            left = left.checked_sub(lines.len())?;
            Some((place.hash?, lines))
        });
        recorded.collect()
    }

    /// Returns the budget of the work on the catalog.
    pub fn budget(&self) -> &Budget {
        &self.context.settings.budget
    }

    /// Fails if the work was stopped, or has taken too many steps.
    ///
    /// # Errors
    /// [`RenderError::Stopped`] and [`RenderError::Limit`].
    pub fn check_budget(&self) -> Result<(), RenderError> {
        self.context.check_budget()
    }

    /// Returns the names of the Packages, in byte order.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        let names = self.shards.iter().map(|shard| shard.name.as_str());
        names.filter(|name| !name.is_empty())
    }

    /// True if `snapshot` has the same content: Shards with the same names and lines in the same
    /// order.
    pub fn equals(&self, snapshot: &Snapshot) -> bool {
        let ours = self
            .shards
            .iter()
            .map(|shard| (shard.name.as_str(), shard.lines));
        ours.eq(snapshot
            .shards()
            .map(|shard| (shard.name.as_str(), shard.lines)))
    }

    /// Returns the bytes to store for a Shard: one zstd frame.
    ///
    /// # Errors
    /// [`RenderError::Scratch`], or [`RenderError::Unreadable`] for a Shard that the store has.
    pub fn compressed(&self, shard: &Shard) -> Result<Vec<u8>, RenderError> {
        self.context.read(&shard.body)
    }

    /// Passes the lines of a Shard to `sink`, block by block. Bytes of the store are not checked
    /// here.
    ///
    /// # Errors
    /// As [`Self::compressed`], and [`RenderError::Damaged`].
    pub fn read_lines(
        &self,
        shard: &Shard,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<(), RenderError> {
        let read = copy_lines(&self.compressed(shard)?, |block| {
            sink(block);
            Ok(())
        });
        // A shard of the store that does not decompress can be repaired; what was just compressed
        // cannot.
        read.map_err(|error| match shard.is_stored() {
            true => RenderError::Damaged(shard.stored.sha256),
            false => RenderError::Scratch(error),
        })
    }

    /// Returns the Snapshot, without facts. `None` if `all` lacks `all.json.zst` or `all.json.gz`,
    /// which every Snapshot names.
    pub fn snapshot(
        &self,
        all: &AllFacts,
        index: ObjectDigest,
        image: Option<CatalogImage>,
    ) -> Option<Snapshot> {
        let shards = self.shards.iter().map(|shard| ShardRef {
            name: shard.name.clone(),
            stored: shard.stored,
            lines: shard.lines,
            metas: shard.metas.len() as u64,
        });
        let mut shards = shards.peekable();
        let made = |encoding| all.made.get(&Kind::All(encoding)).copied();
        Some(Snapshot {
            render_version: RENDER_VERSION,
            content_hash: all.content_hash,
            size: all.size,
            metas: self
                .shards
                .iter()
                .map(|shard| shard.metas.len() as u64)
                .sum(),
            all: AllFormats {
                zstd: made(Encoding::Zstd)?,
                gzip: made(Encoding::Gzip)?,
                identity: made(Encoding::Identity),
            },
            segments: all.segments.clone(),
            index,
            facts: BTreeMap::new(),
            global: shards.next_if(ShardRef::is_global),
            packages: shards.collect(),
            image,
        })
    }

    /// Returns the index as it is stored: one zstd frame.
    ///
    /// # Errors
    /// Fails if the compressor cannot allocate its memory.
    pub fn index(&self) -> io::Result<Vec<u8>> {
        let shards = self.shards.iter().map(|shard| IndexedShard {
            lines: shard.lines.sha256,
            metas: (&shard.metas).into(),
        });
        let index = Index {
            shards: shards.collect(),
        };
        // Written twice, because the text of a large catalog has megabytes, and its size stands at
        // the start of the frame.
        let mut counted = BufWriter::new(HashingWriter::new(io::sink()));
        index.write_to(&mut counted)?;
        let size = counted.into_inner()?.finish()?.size;
        // Not the level of other documents: the densest one would take seconds.
        let mut encoder = encoder(Vec::new(), self.context.settings.shard_level, size)?;
        encoder.window_log(DOCUMENT_WINDOW_LOG)?;
        let mut text = BufWriter::new(encoder);
        index.write_to(&mut text)?;
        text.into_inner()?.finish()
    }
}

/// Returns the position and the names of each Meta in the canonical lines of a Shard. `None` if
/// they are not canonical FBC of the expected size.
pub fn index_lines(mut lines: impl Read, expected: Content) -> Option<Vec<IndexedMeta>> {
    // Whatever limits the publisher had: a line is at most as long as its Shard.
    let limits = fbc::FbcLimits {
        document_bytes: usize::try_from(expected.size).ok()?.max(1),
        memory_bytes: usize::MAX,
        ..fbc::FbcLimits::default()
    };
    let mut metas = Vec::new();
    let mut offset = 0;
    // Canonical lines are FBC, and their canonical form is the lines themselves.
    for chunk in Chunks::new(&mut lines, limits, RenderSettings::default().chunk_bytes) {
        let indexed = chunk.and_then(|chunk| {
            chunk.metas(&limits, &mut |meta| {
                metas.push(indexed(&meta, offset));
                offset += meta.line.len() as u64;
            })
        });
        indexed.ok()?;
    }
    (offset == expected.size).then_some(metas)
}
