use std::sync::atomic::Ordering;
use std::{collections::BTreeMap, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, future::try_join_all, stream};
use model::{
    CatalogImage, IndexedMeta, Kind, ObjectDigest, SeenPackage, Snapshot, StoredDocument,
    ValidationCounts,
};
use olm::PackageBundles;
use render::{AllFacts, RenderError, Rendering, Sinks};
use store::{Staged, Staging, Store, StoreError, bridge};
use tokio::task::JoinError;
use work::{Budget, run};

use super::facts::{CatalogFacts, Described, WantedFacts, describe};
use super::seen::SeenBefore;
use crate::{PollError, PollProgress, PublishError, Transaction};

/// Maximum number of puts in flight: enough to hide the latency of object storage, too few to be
/// throttled by it.
const PUTS_IN_FLIGHT: usize = 32;

/// New content that is stored, and not published.
pub(super) struct PutContent {
    pub(super) snapshot: Snapshot,
    /// Digest of the stored Snapshot.
    pub(super) digest: ObjectDigest,
    /// Numbers of findings; `None` if the content was not validated.
    pub(super) counts: Option<ValidationCounts>,
}

/// Describes the content, and puts everything that its Snapshot names, and the Snapshot. The whole
/// catalog is stored in these `kinds`. Nothing is put before `judge` has let the content pass; it
/// returns the numbers of findings.
pub(super) async fn put_content(
    transaction: &Transaction,
    rendering: Arc<Rendering>,
    kinds: Vec<Kind>,
    wanted: WantedFacts<'_>,
    seen: SeenBefore,
    progress: &PollProgress,
    judge: impl FnOnce(&Described) -> Result<Option<ValidationCounts>, PollError>,
) -> Result<PutContent, PollError> {
    let budget = rendering.budget().clone();
    // Reading facts leaves processors idle at its end, and shards wait for the disk or the network:
    // the whole catalog does not.
    let staged = StagedAll::open(wanted.store, kinds).await?;
    let written = staged.write::<PollError>(rendering.clone());
    let judged = async {
        let described = describe(rendering.clone(), wanted).await?;
        let counts = judge(&described)?;
        let shards = put_shards(transaction, &rendering, progress);
        let facts = put_facts(transaction, &budget, described.facts);
        let index = put_bytes(transaction, Kind::Index, described.index);
        let packages = rendering
            .shards()
            .iter()
            .filter(|shard| !shard.name.is_empty());
        let days = seen.days(packages.map(|shard| PackageBundles {
            package: &shard.name,
            bundles: bundle_names(&shard.metas),
        }));
        let days = put_document(transaction, &budget, days);
        let ((), mut facts, index, (_, days)) = tokio::try_join!(shards, facts, index, days)?;
        facts.insert(SeenPackage::KIND.to_owned(), days);
        Ok(JudgedContent {
            counts,
            facts,
            index,
        })
    };
    let (judged, written) = tokio::try_join!(judged, written)?;
    let image = put_all(transaction, &written.facts, written.staged).await?;
    let made = rendering.snapshot(&written.facts, judged.index, Some(image));
    // The shards that it keeps in memory are put.
    drop(rendering);
    let mut snapshot = made.expect("both encodings have a sink");
    snapshot.facts = judged.facts;
    let (snapshot, digest) = put_document(transaction, &budget, snapshot).await?;
    Ok(PutContent {
        snapshot,
        digest,
        counts: judged.counts,
    })
}

fn bundle_names(metas: &[IndexedMeta]) -> Vec<&str> {
    let bundles = metas.iter().filter(|meta| meta.schema == "olm.bundle");
    bundles.map(|meta| meta.name.as_str()).collect()
}

/// Content that may be published, with its documents in the store.
struct JudgedContent {
    counts: Option<ValidationCounts>,
    facts: BTreeMap<String, ObjectDigest>,
    index: ObjectDigest,
}

/// Puts the whole catalog, and the documents of its image.
async fn put_all(
    transaction: &Transaction,
    all: &AllFacts,
    staged: Vec<(Kind, Box<dyn Staged>)>,
) -> Result<CatalogImage, PollError> {
    // All at once, as the shards.
    let objects = all.made.iter().map(|(kind, made)| made.with_kind(*kind));
    transaction.claim(objects).await?;
    let puts = staged
        .into_iter()
        .map(|(kind, object)| transaction.put_staged(all.made[&kind].with_kind(kind), object));
    try_join_all(puts).await?;
    // After the layer, which they name.
    let layer = all.made[&Kind::Blob];
    let diff_id = all.diff_id.expect("the layer has a sink");
    let documents = oci::Documents::new(layer, diff_id);
    let image = documents.image(layer, diff_id);
    for bytes in documents.into_all() {
        put_bytes(transaction, Kind::Blob, bytes).await?;
    }
    Ok(image)
}

/// Staged objects that the whole catalog is written to, by their kind. They get their keys once
/// their hashes are known.
pub struct StagedAll {
    sinks: Sinks,
    stagings: Vec<(Kind, Staging)>,
}

/// The whole catalog, written to staged objects.
pub struct WrittenAll {
    /// Hashes and sizes of the objects.
    pub facts: AllFacts,
    /// The objects, by their kind.
    pub staged: Vec<(Kind, Box<dyn Staged>)>,
}

impl StagedAll {
    /// Opens an object of each kind.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn open(store: &dyn Store, kinds: Vec<Kind>) -> Result<Self, StoreError> {
        let mut sinks = Sinks::new();
        let mut stagings = Vec::new();
        for kind in kinds {
            let (writer, staging) = bridge(store.stage().await?);
            sinks.insert(kind, Box::new(writer));
            stagings.push((kind, staging));
        }
        Ok(Self { sinks, stagings })
    }

    /// Writes the whole catalog in one pass.
    ///
    /// # Errors
    /// A store that fails, and the errors of [`Rendering::write_all`].
    pub async fn write<E: From<StoreError> + From<RenderError> + From<JoinError>>(
        self,
        rendering: Arc<Rendering>,
    ) -> Result<WrittenAll, E> {
        let sinks = self.sinks;
        let written = run(rendering.budget().clone(), move || {
            rendering.write_all(sinks)
        })
        .await?;
        let mut staged = Vec::new();
        for (kind, staging) in self.stagings {
            // A store that failed made the writing fail: its error is the cause.
            staged.push((kind, staging.await??));
        }
        Ok(WrittenAll {
            facts: written?,
            staged,
        })
    }
}

async fn put_bytes(
    transaction: &Transaction,
    kind: Kind,
    bytes: Vec<u8>,
) -> Result<ObjectDigest, PollError> {
    let digest = ObjectDigest::of(&bytes);
    transaction
        .put_verified(digest.with_kind(kind), bytes.into())
        .await?;
    Ok(digest)
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
    let (compressed, document) =
        run(budget.clone(), move || (document.to_stored(), document)).await?;
    let bytes = compressed.map_err(PublishError::Compress)?;
    Ok((document, put_bytes(transaction, D::KIND, bytes).await?))
}

async fn put_shards(
    transaction: &Transaction,
    rendering: &Rendering,
    progress: &PollProgress,
) -> Result<(), PollError> {
    let new: Vec<_> = rendering
        .shards()
        .iter()
        .filter(|shard| !shard.is_stored())
        .collect();
    progress
        .objects
        .fetch_add(new.len() as u64, Ordering::Relaxed);
    // All at once: each spare of its own would be a write of gc.json.
    let objects = new
        .iter()
        .map(|shard| shard.stored.with_kind(Kind::Package));
    transaction.claim(objects).await?;
    let puts = new.into_iter().map(async |shard| {
        let bytes = rendering.compressed(shard)?;
        let object = shard.stored.with_kind(Kind::Package);
        transaction.put_verified(object, bytes.into()).await?;
        progress.put.fetch_add(1, Ordering::Relaxed);
        Ok::<_, PollError>(())
    });
    let begun: Vec<_> = puts.collect();
    let mut written = stream::iter(begun).buffer_unordered(PUTS_IN_FLIGHT);
    while written.try_next().await?.is_some() {}
    Ok(())
}
