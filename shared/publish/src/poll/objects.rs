use std::{collections::BTreeMap, io::Write, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{CatalogImage, Encoding, Kind, ObjectDigest, Snapshot, StoredDocument};
use render::{AllFacts, LayerFacts, RenderError, Rendering, Shard, Sinks};
use store::{Staged, StagedWriter, Staging, Store, bridge};
use work::run;

use super::facts::DescribedContent;
use crate::{PollError, PublishError, Transaction};

/// Maximum number of puts in flight: enough to hide the latency of object storage, too few to be throttled by it.
const PUTS_IN_FLIGHT: usize = 32;

/// Puts everything that a Snapshot names, and the Snapshot.
pub(crate) struct ObjectWriter<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) transaction: &'a Transaction,
    /// True if a plain `all.json` is stored as well.
    pub(crate) identity: bool,
}

impl ObjectWriter<'_> {
    /// Returns the Snapshot and its stored bytes' digest, when all is put.
    pub(crate) async fn write(&self, content: DescribedContent) -> Result<(Snapshot, ObjectDigest), PollError> {
        let rendering = Arc::new(content.rendering);
        // Shards wait for the disk or the network while the whole catalog keeps the processor busy.
        let ((), (all, image)) = tokio::try_join!(self.put_shards(&rendering), self.put_all(rendering.clone()))?;
        let mut rendering = Arc::into_inner(rendering).expect("both have ended and kept nothing");
        let index = rendering.take_index().map_err(RenderError::Scratch)?;
        let put = self
            .transaction
            .put_verified(index.stored.with_kind(Kind::Index), index.bytes.into());
        put.await?;
        let snapshot = rendering.snapshot(&all, index.stored, Some(image));
        let mut facts = BTreeMap::new();
        for (kind, document) in &content.facts.documents {
            facts.insert((*kind).to_owned(), self.put_document(document).await?);
        }
        let snapshot = Snapshot {
            facts,
            ..snapshot.expect("both encodings have a sink")
        };
        let digest = self.put_document(&snapshot).await?;
        Ok((snapshot, digest))
    }

    async fn put_document<D: StoredDocument>(&self, document: &D) -> Result<ObjectDigest, PollError> {
        let bytes = document.to_stored().map_err(PublishError::Compress)?;
        let digest = ObjectDigest::of(&bytes);
        let put = self.transaction.put_verified(digest.with_kind(D::KIND), bytes.into());
        put.await?;
        Ok(digest)
    }

    async fn put_shards(&self, rendering: &Rendering) -> Result<(), PollError> {
        let new = rendering.shards().iter().filter(|shard| !shard.is_stored());
        let new: Vec<_> = new.collect();
        // All at once: each spare of its own would be a write of gc.json.
        let objects = new.iter().map(|shard| shard.stored.with_kind(Kind::Package));
        self.transaction.claim(objects).await?;
        let puts: Vec<_> = new.into_iter().map(|shard| self.put_shard(rendering, shard)).collect();
        stream::iter(puts)
            .buffer_unordered(PUTS_IN_FLIGHT)
            .try_for_each(async |()| Ok(()))
            .await
    }

    async fn put_shard(&self, rendering: &Rendering, shard: &Shard) -> Result<(), PollError> {
        let bytes = rendering.compressed(shard)?.into_owned();
        let put = self
            .transaction
            .put_verified(shard.stored.with_kind(Kind::Package), bytes.into());
        Ok(put.await.map(drop)?)
    }

    /// Writes the whole catalog. The compressing threads write into staged objects, which get their keys once their hashes
    /// are known.
    async fn put_all(&self, rendering: Arc<Rendering>) -> Result<(AllFacts, CatalogImage), PollError> {
        // Staged, because the key of an object is the hash of its bytes and is known only at the end.
        let (zstd, zstd_staging) = self.stage().await?;
        let (gzip, gzip_staging) = self.stage().await?;
        let (layer, layer_staging) = self.stage().await?;
        let identity = if self.identity { Some(self.stage().await?) } else { None };
        let (identity, identity_staging) = identity.unzip();
        let sinks = Sinks {
            zstd: Some(Box::new(zstd)),
            gzip: Some(Box::new(gzip)),
            identity: identity.map(|writer| Box::new(writer) as Box<dyn Write + Send>),
            layer: Some(Box::new(layer)),
        };
        let facts = run(rendering.budget().clone(), move || rendering.write_all(sinks)).await?;
        // A store that failed made the writing fail: its error is the cause.
        let zstd = zstd_staging.await??;
        let gzip = gzip_staging.await??;
        let layer = layer_staging.await??;
        let identity = match identity_staging {
            Some(staging) => Some(staging.await??),
            None => None,
        };
        let facts = facts?;
        self.put_encoding(Encoding::Zstd, facts.zstd, zstd).await?;
        self.put_encoding(Encoding::Gzip, facts.gzip, gzip).await?;
        if let Some(identity) = identity {
            self.put_encoding(Encoding::Identity, facts.identity, identity).await?;
        }
        let layer_facts = facts.layer.expect("the layer has a sink");
        let image = self.put_image(layer, layer_facts).await?;
        Ok((facts, image))
    }

    async fn put_encoding(
        &self,
        encoding: Encoding,
        digest: Option<ObjectDigest>,
        staged: Box<dyn Staged>,
    ) -> Result<(), PollError> {
        let digest = digest.expect("each encoding with a sink is written");
        let put = self
            .transaction
            .put_staged(digest.with_kind(Kind::All(encoding)), staged);
        Ok(put.await.map(drop)?)
    }

    /// Puts the layer, then the documents that name it.
    async fn put_image(&self, staged: Box<dyn Staged>, facts: LayerFacts) -> Result<CatalogImage, PollError> {
        let LayerFacts { stored, diff_id } = facts;
        self.transaction
            .put_staged(stored.with_kind(Kind::Blob), staged)
            .await?;
        let documents = oci::Documents::new(stored, diff_id);
        let image = documents.image(stored, diff_id);
        for bytes in documents.into_all() {
            let object = ObjectDigest::of(&bytes).with_kind(Kind::Blob);
            self.transaction.put_verified(object, bytes.into()).await?;
        }
        Ok(image)
    }

    async fn stage(&self) -> Result<(StagedWriter, Staging), PollError> {
        Ok(bridge(self.store.stage().await?))
    }
}
