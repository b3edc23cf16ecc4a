use std::{collections::HashMap, io, sync::Arc};

use model::{Kind, ObjectDigest, Sha256, Snapshot};
use render::StoredShards;
use store::{Store, read_object};
use tokio::runtime::Handle;

/// Shards of published Snapshots, for the render workers.
pub(crate) struct PublishedShards {
    store: Arc<dyn Store>,
    runtime: Handle,
    /// Stored object by the hash of the lines.
    shards: HashMap<Sha256, ObjectDigest>,
}

impl PublishedShards {
    /// Must be called inside a runtime.
    pub(crate) fn new<'a>(store: Arc<dyn Store>, snapshots: impl IntoIterator<Item = &'a Snapshot>) -> Self {
        let shards = snapshots.into_iter().flat_map(Snapshot::shards);
        let shards = shards.map(|shard| (shard.lines.sha256, shard.stored)).collect();
        Self {
            store,
            runtime: Handle::current(),
            shards,
        }
    }
}

impl StoredShards for PublishedShards {
    fn stored(&self, lines: &Sha256) -> Option<ObjectDigest> {
        self.shards.get(lines).copied()
    }

    fn load(&self, stored: &ObjectDigest) -> io::Result<Vec<u8>> {
        let object = stored.with_kind(Kind::Package);
        let read = self.runtime.block_on(read_object(&*self.store, &object));
        read.map(Into::into).map_err(io::Error::other)
    }
}
