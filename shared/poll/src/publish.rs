use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use layout::{CatalogName, Document, Form, Image, Key, Sha256, Snapshot, SnapshotRef, Stored, Whole};
use render::{AllFacts, LayerFacts, RenderError, Rendering, Shard, Sinks};
use store::{Staged, StagedWriter, Staging, Store, bridge};

use crate::{PollError, adopt, published::PublishedShards};

/// How many puts are in flight: enough to hide the latency of object storage, too few to be throttled by it.
const PUTS: usize = 32;

/// Writes everything that a publication names, but not the pointer to it.
pub(crate) struct Publisher<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) catalog: &'a CatalogName,
    pub(crate) published: &'a PublishedShards,
    /// Whether to keep a plain `all.json` as well.
    pub(crate) identity: bool,
    /// Whether something that was published is known to be damaged.
    pub(crate) wary: bool,
    pub(crate) written: Written,
}

/// What was written so far.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) objects: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

impl Written {
    fn add(&self, (stored, now): (Stored, bool)) -> Stored {
        if now {
            self.objects.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(stored.size, Ordering::Relaxed);
        }
        stored
    }
}

impl Publisher<'_> {
    pub(crate) async fn publish(&self, rendering: Rendering) -> Result<(Snapshot, SnapshotRef), PollError> {
        let rendering = Arc::new(rendering);
        // Shards wait for the disk or the network while the whole keeps the processor busy.
        let (new_shards, (facts, whole, image)) =
            tokio::try_join!(self.put_shards(&rendering), self.put_all(rendering.clone()))?;
        let mut rendering = Arc::into_inner(rendering).expect("both have ended and kept nothing");
        let index = self.put_index(&mut rendering, facts.content_hash).await?;
        let stored = |sha256: &Sha256| {
            let stored = new_shards
                .get(sha256)
                .copied()
                .or_else(|| self.published.stored(sha256));
            stored.expect("a shard is either put now or named by the previous snapshot")
        };
        let snapshot = Snapshot {
            image: Some(image),
            ..rendering.snapshot(&facts, whole, index, stored)
        };
        let reference = self.put_snapshot(&snapshot).await?;
        self.store.flush().await?;
        Ok((snapshot, reference))
    }

    async fn put_shards(&self, rendering: &Rendering) -> Result<HashMap<Sha256, Stored>, PollError> {
        let new = rendering.shards().iter().filter(|shard| !shard.is_published());
        let puts: Vec<_> = new.map(|shard| self.put_shard(rendering, shard)).collect();
        stream::iter(puts).buffer_unordered(PUTS).try_collect().await
    }

    async fn put_shard(&self, rendering: &Rendering, shard: &Shard) -> Result<(Sha256, Stored), PollError> {
        let bytes = Bytes::from(rendering.compressed(shard)?.into_owned());
        let put = adopt::put(&**self.store, &Key::Shard(shard.sha256), bytes, shard.sha256).await?;
        Ok((shard.sha256, self.written.add(put)))
    }

    /// The compressing threads write into staged objects, which get their keys once their hashes are known.
    async fn put_all(&self, rendering: Arc<Rendering>) -> Result<(AllFacts, Whole, Image), PollError> {
        let (zstd, zstd_staging) = self.stage().await?;
        let (gzip, gzip_staging) = self.stage().await?;
        let (layer, layer_staging) = self.stage().await?;
        let identity = if self.identity { Some(self.stage().await?) } else { None };
        let (identity, identity_staging) = identity.unzip();
        let sinks = Sinks {
            zstd: Some(Box::new(zstd)),
            gzip: Some(Box::new(gzip)),
            identity: identity.map(boxed),
            layer: Some(Box::new(layer)),
        };
        let writing = tokio::task::spawn_blocking(move || rendering.write_all(sinks));
        let facts = writing.await?;
        // A store that failed made the writing fail: its error is the cause.
        let zstd = zstd_staging.await??;
        let gzip = gzip_staging.await??;
        let layer = layer_staging.await??;
        let identity = match identity_staging {
            Some(staging) => Some(staging.await??),
            None => None,
        };
        let facts = facts?;
        let whole = Whole {
            zstd: self.commit(zstd, Form::Zstd, facts.zstd, &facts).await?,
            gzip: self.commit(gzip, Form::Gzip, facts.gzip, &facts).await?,
            identity: match identity {
                Some(staged) => Some(self.commit(staged, Form::Identity, facts.identity, &facts).await?),
                None => None,
            },
        };
        let image = self.put_image(layer, &facts).await?;
        Ok((facts, whole, image))
    }

    /// The layer first, then what names it: all of them under their digests.
    async fn put_image(&self, staged: Box<dyn Staged>, facts: &AllFacts) -> Result<Image, PollError> {
        let LayerFacts { stored, diff_id } = facts.layer.expect("the layer has a sink");
        let key = Key::Blob(stored.sha256);
        self.written
            .add(adopt::commit(&**self.store, staged, &key, (stored, stored.sha256), self.wary).await?);
        let documents = oci::Documents::new(stored, diff_id);
        let image = documents.image(stored, diff_id);
        for bytes in documents.into_all() {
            let digest = Sha256::of(&bytes);
            let put = adopt::put(&**self.store, &Key::Blob(digest), bytes.into(), digest).await?;
            self.written.add(put);
        }
        Ok(image)
    }

    async fn stage(&self) -> Result<(StagedWriter, Staging), PollError> {
        Ok(bridge(self.store.stage().await?))
    }

    async fn commit(
        &self,
        staged: Box<dyn Staged>,
        form: Form,
        ours: Option<Stored>,
        facts: &AllFacts,
    ) -> Result<Stored, PollError> {
        let ours = ours.expect("every form with a sink was written");
        let key = Key::All(self.catalog.clone(), facts.content_hash, form);
        let put = adopt::commit(&**self.store, staged, &key, (ours, facts.content_hash), self.wary).await?;
        Ok(self.written.add(put))
    }

    async fn put_index(&self, rendering: &mut Rendering, content_hash: Sha256) -> Result<Stored, PollError> {
        let index = rendering.take_index().map_err(RenderError::Scratch)?;
        let key = Key::Index(self.catalog.clone(), content_hash);
        let put = adopt::put(&**self.store, &key, index.bytes.into(), index.content).await?;
        Ok(self.written.add(put))
    }

    async fn put_snapshot(&self, snapshot: &Snapshot) -> Result<SnapshotRef, PollError> {
        let bytes = snapshot.to_bytes();
        let reference = SnapshotRef::new(self.catalog, snapshot.content_hash, &bytes);
        let key = Key::Snapshot(self.catalog.clone(), snapshot.content_hash);
        self.written
            .add(adopt::put(&**self.store, &key, bytes.into(), reference.sha256).await?);
        Ok(reference)
    }
}

fn boxed(writer: StagedWriter) -> Box<dyn std::io::Write + Send> {
    Box::new(writer)
}
