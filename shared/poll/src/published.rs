use std::{collections::HashMap, io, sync::Arc};

use layout::{Key, Sha256, Snapshot, Stored};
use store::{Store, StoreExt};
use tokio::runtime::Handle;

/// The Shards that the previous Snapshot names, for the render workers.
pub(crate) struct PublishedShards {
    store: Arc<dyn Store>,
    runtime: Handle,
    shards: HashMap<Sha256, Stored>,
}

impl PublishedShards {
    /// Must be called inside a runtime.
    pub(crate) fn new(store: Arc<dyn Store>, snapshot: Option<&Snapshot>) -> Self {
        let shards = snapshot.into_iter().flat_map(Snapshot::shards);
        let shards = shards.map(|shard| (shard.sha256, shard.stored)).collect();
        Self {
            store,
            runtime: Handle::current(),
            shards,
        }
    }

    pub(crate) fn stored(&self, sha256: &Sha256) -> Option<Stored> {
        self.shards.get(sha256).copied()
    }
}

impl render::Published for PublishedShards {
    fn contains(&self, sha256: &Sha256) -> bool {
        self.shards.contains_key(sha256)
    }

    fn load(&self, sha256: &Sha256) -> io::Result<Vec<u8>> {
        let stored = self.stored(sha256).ok_or(io::ErrorKind::NotFound)?;
        let key = Key::Shard(*sha256);
        let (bytes, _) = self
            .runtime
            .block_on(self.store.read_all(&key, stored.size))
            .map_err(io::Error::other)?;
        Ok(bytes.into())
    }
}
