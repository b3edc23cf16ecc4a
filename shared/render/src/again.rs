//! A publication as a Rendering: what was made of the FBC can be made of the Shards again.

use std::sync::{Arc, Mutex};

use fbc::Chunks;
use layout::{IndexedMeta, ShardRef, Snapshot};

use crate::{
    Published, RenderError, Rendering, Settings, Shard,
    count::Count,
    scratch::Scratch,
    shard::{Body, load},
    worker::Shop,
};

impl Rendering {
    /// What `snapshot` describes, without any FBC: `published` reads its Shards back. [`Rendering::write_all`] gives
    /// the forms of `all.json` again, byte for byte if the compressors are the same; it counts no Metas.
    pub fn again(snapshot: &Snapshot, published: Arc<dyn Published>, settings: Settings) -> Self {
        let scratch = Scratch::new(settings.memory_bytes, settings.scratch_dir.clone());
        let count = Count::new(&settings.limits);
        Self {
            shards: snapshot.shards().map(Shard::again).collect(),
            shop: Arc::new(Shop {
                settings,
                published,
                scratch,
                count,
                results: Mutex::default(),
            }),
        }
    }

    /// Reads the Metas of all Shards back, so that [`Rendering::take_index`] gives the index again.
    ///
    /// # Errors
    /// [`RenderError::Damaged`] and [`RenderError::Published`] for Shards that cannot be relied on.
    pub fn read_metas(&mut self) -> Result<(), RenderError> {
        let shop = &self.shop;
        self.shards.iter_mut().try_for_each(|shard| shard.read_metas(shop))
    }
}

impl Shard {
    fn again(published: &ShardRef) -> Self {
        Self {
            name: published.name.clone(),
            sha256: published.sha256,
            size: published.size,
            metas: Vec::new(),
            body: Body::Published,
        }
    }

    /// Canonical lines are FBC, and their canonical form is themselves.
    fn read_metas(&mut self, shop: &Shop) -> Result<(), RenderError> {
        let damaged = || RenderError::Damaged { sha256: self.sha256 };
        let Settings {
            limits, chunk_bytes, ..
        } = &shop.settings;
        let compressed = load(&*shop.published, &self.sha256)?;
        let mut lines = zstd::Decoder::with_buffer(&compressed[..]).map_err(|_| damaged())?;
        let mut metas = Vec::new();
        let mut offset = 0;
        for chunk in Chunks::new(&mut lines, limits.document, *chunk_bytes) {
            let read = chunk.and_then(|chunk| {
                chunk.metas(&limits.document, &mut |meta| {
                    let length = meta.line.len() as u64;
                    metas.push(IndexedMeta {
                        schema: meta.schema.to_owned(),
                        package: meta.package.to_owned(),
                        name: meta.name.to_owned(),
                        offset,
                        length,
                    });
                    offset += length;
                })
            });
            read.map_err(|_| damaged())?;
        }
        if offset != self.size {
            return Err(damaged());
        }
        self.metas = metas;
        Ok(())
    }
}
