use std::{collections::BTreeMap, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{CatalogImage, Encoding, Kind, ObjectDigest, Snapshot, StoredDocument};
use render::{AllFacts, RenderError, Rendering, Shard, Sinks};
use store::{Staged, Store, StoreError, bridge};
use tokio::task::JoinError;
use work::{Budget, run};

use super::{
    facts::{CatalogFacts, DescribedContent},
    once::Poll,
};
use crate::{PollError, PublishError, Transaction};

/// Maximum number of puts in flight: enough to hide the latency of object storage, too few to be throttled by it.
const PUTS_IN_FLIGHT: usize = 32;

impl Poll<'_> {
    /// Puts everything that a Snapshot names, and the Snapshot. Returns it with its stored bytes' digest.
    pub(crate) async fn put_objects(
        &self,
        transaction: &Transaction,
        content: DescribedContent,
    ) -> Result<(Snapshot, ObjectDigest), PollError> {
        let budget = content.rendering.budget().clone();
        let rendering = Arc::new(content.rendering);
        // Shards wait for the disk or the network while the whole catalog and the documents keep the processors busy.
        let ((), (all, image), facts) = tokio::try_join!(
            put_shards(transaction, &rendering),
            self.put_all(transaction, rendering.clone()),
            put_facts(transaction, &budget, content.facts)
        )?;
        let mut rendering = Arc::into_inner(rendering).expect("both have ended and kept nothing");
        let take_index = move || (rendering.take_index(), rendering);
        let (index, rendering) = run(budget.clone(), take_index).await?;
        let index = index.map_err(RenderError::Scratch)?;
        let put = transaction.put_verified(index.stored.with_kind(Kind::Index), index.bytes.into());
        put.await?;
        let snapshot = rendering.snapshot(&all, index.stored, Some(image));
        // The shards that it keeps in memory are put.
        drop(rendering);
        let snapshot = Snapshot {
            facts,
            ..snapshot.expect("both encodings have a sink")
        };
        put_document(transaction, &budget, snapshot).await
    }

    /// Writes the whole catalog, and the documents of its image.
    async fn put_all(
        &self,
        transaction: &Transaction,
        rendering: Arc<Rendering>,
    ) -> Result<(AllFacts, CatalogImage), PollError> {
        let mut kinds = vec![Kind::All(Encoding::Zstd), Kind::All(Encoding::Gzip), Kind::Blob];
        if self.mirror.settings.identity {
            kinds.push(Kind::All(Encoding::Identity));
        }
        let (facts, staged) = stage_all::<PollError>(&*self.mirror.store, rendering, kinds).await?;
        for (kind, staged) in staged {
            transaction
                .put_staged(facts.made[&kind].with_kind(kind), staged)
                .await?;
        }
        // After the layer, which they name.
        let layer = facts.made[&Kind::Blob];
        let diff_id = facts.diff_id.expect("the layer has a sink");
        let documents = oci::Documents::new(layer, diff_id);
        let image = documents.image(layer, diff_id);
        for bytes in documents.into_all() {
            let object = ObjectDigest::of(&bytes).with_kind(Kind::Blob);
            transaction.put_verified(object, bytes.into()).await?;
        }
        Ok((facts, image))
    }
}

/// Writes the whole catalog in one pass, in each of these kinds. The compressing threads write into staged objects, which get their
/// keys once their hashes are known.
///
/// # Errors
/// A store that fails, and the errors of [`Rendering::write_all`].
pub async fn stage_all<E: From<StoreError> + From<RenderError> + From<JoinError>>(
    store: &dyn Store,
    rendering: Arc<Rendering>,
    kinds: Vec<Kind>,
) -> Result<(AllFacts, Vec<(Kind, Box<dyn Staged>)>), E> {
    let (mut sinks, mut stagings) = (Sinks::new(), Vec::new());
    for kind in kinds {
        let (writer, staging) = bridge(store.stage().await?);
        sinks.insert(kind, Box::new(writer));
        stagings.push((kind, staging));
    }
    let facts = run(rendering.budget().clone(), move || rendering.write_all(sinks)).await?;
    let mut staged = Vec::new();
    for (kind, staging) in stagings {
        // A store that failed made the writing fail: its error is the cause.
        staged.push((kind, staging.await??));
    }
    Ok((facts?, staged))
}

async fn put_facts(
    transaction: &Transaction,
    budget: &Budget,
    content: CatalogFacts,
) -> Result<BTreeMap<String, ObjectDigest>, PollError> {
    let mut facts = BTreeMap::new();
    for (kind, document) in content.documents {
        let (_, digest) = put_document(transaction, budget, document).await?;
        facts.insert(kind.to_owned(), digest);
    }
    Ok(facts)
}

/// Puts a document. Compressing a large one takes a tenth of a second, so another thread does it.
async fn put_document<D: StoredDocument + Send + 'static>(
    transaction: &Transaction,
    budget: &Budget,
    document: D,
) -> Result<(D, ObjectDigest), PollError> {
    let compress = move || (document.to_stored(), document);
    let (bytes, document) = run(budget.clone(), compress).await?;
    let bytes = bytes.map_err(PublishError::Compress)?;
    let digest = ObjectDigest::of(&bytes);
    transaction
        .put_verified(digest.with_kind(D::KIND), bytes.into())
        .await?;
    Ok((document, digest))
}

async fn put_shards(transaction: &Transaction, rendering: &Rendering) -> Result<(), PollError> {
    let new: Vec<_> = rendering.shards().iter().filter(|shard| !shard.is_stored()).collect();
    // All at once: each spare of its own would be a write of gc.json.
    let objects = new.iter().map(|shard| shard.stored.with_kind(Kind::Package));
    transaction.claim(objects).await?;
    let puts: Vec<_> = new
        .into_iter()
        .map(|shard| put_shard(transaction, rendering, shard))
        .collect();
    let mut puts = stream::iter(puts).buffer_unordered(PUTS_IN_FLIGHT);
    while puts.try_next().await?.is_some() {}
    Ok(())
}

async fn put_shard(transaction: &Transaction, rendering: &Rendering, shard: &Shard) -> Result<(), PollError> {
    let bytes = rendering.compressed(shard)?.into_owned();
    let put = transaction.put_verified(shard.stored.with_kind(Kind::Package), bytes.into());
    Ok(put.await.map(drop)?)
}
