use std::{borrow::Cow, sync::Arc};

use layout::{RENDER_VERSION, Sha256, ShardRef, Snapshot, Stored, Whole};

use crate::{AllFacts, RenderError, Shard, worker::Shop};

/// A catalog, rendered: its Shards in the order in which they make up `all.json`.
pub struct Rendering {
    pub(crate) shards: Vec<Shard>,
    pub(crate) shop: Arc<Shop>,
}

impl Rendering {
    /// The Shards: the global group first if there is one, then the Packages in byte order of their names.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The names of the Packages.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        self.shards
            .iter()
            .map(|shard| shard.name.as_str())
            .filter(|name| !name.is_empty())
    }

    /// Whether `snapshot` has the same content: the same Shards in the same order.
    pub fn equals(&self, snapshot: &Snapshot) -> bool {
        let ours = self.shards.iter().map(|shard| (shard.name.as_str(), shard.sha256));
        ours.eq(snapshot.shards().map(|shard| (shard.name.as_str(), shard.sha256)))
    }

    /// The bytes to store for a Shard: one zstd frame.
    ///
    /// # Errors
    /// [`RenderError::Scratch`], or [`RenderError::Published`] for a Shard that is published already.
    pub fn compressed<'a>(&'a self, shard: &'a Shard) -> Result<Cow<'a, [u8]>, RenderError> {
        shard.compressed(&self.shop)
    }

    /// The Snapshot document. `stored` tells what lies in the store under a Shard's hash.
    pub fn snapshot(
        &self,
        all: &AllFacts,
        whole: Whole,
        index: Stored,
        stored: impl Fn(&Sha256) -> Stored,
    ) -> Snapshot {
        let refs = self.shards.iter().zip(&all.metas).map(|(shard, metas)| ShardRef {
            name: shard.name.clone(),
            sha256: shard.sha256,
            size: shard.size,
            metas: *metas,
            stored: stored(&shard.sha256),
        });
        let (global, packages): (Vec<_>, Vec<_>) = refs.partition(|shard| shard.name.is_empty());
        Snapshot {
            render_version: RENDER_VERSION,
            content_hash: all.content_hash,
            size: all.size,
            metas: all.metas.iter().sum(),
            all: whole,
            index,
            global: global.into_iter().next(),
            packages,
            image: None,
        }
    }
}
