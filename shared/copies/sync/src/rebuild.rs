//! Objects that follow from the Shards: made here, they need not be moved. Making them also proves
//! that the Snapshot is right about its lines.

use std::sync::{Arc, atomic::Ordering};

use model::{
    Content, DecodedContent, Index, IndexedMeta, Key, Kind, ObjectDigest, ObjectRef, Snapshot,
    StoredDocument, decode_zstd,
};
use olm::FACT_KINDS;
use publish::{FactReader, KnownFacts, PublishedShards, StagedAll};
use render::{RenderError, RenderSettings, Rendering};
use upkeep::ObjectProblem;
use work::run;

use crate::{SyncError, copier::Copying};

impl Copying<'_> {
    /// Makes the derived objects. Those that have to be fetched are left: all if the options say
    /// so, else those that another version of a compressor or of this program made with other
    /// bytes.
    ///
    /// With an index among them, it also checks the content hash, the names and the counts of the
    /// Snapshot against the lines. A Snapshot with other lines than the published one always has a
    /// new index.
    pub(crate) async fn rebuild(&mut self) -> Result<(), SyncError> {
        self.report.not_rebuilt.clear();
        if self.left.is_empty() {
            return Ok(());
        }
        let makes_all = !self.copier.options.fetch_all;
        let _permit = self
            .copier
            .rebuilds
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let base = self.plan.transaction.base_snapshot().await.ok().flatten();
        let mut rendering = match self.streamed(base).await {
            // The published state may be what is damaged.
            Err(SyncError::Rebuild(error)) if base.is_some() && error.is_damage() => {
                self.streamed(None).await?
            }
            made => made?,
        };
        if makes_all {
            self.documents().await?;
        }
        let has_facts = makes_all && self.lacks(Kind::Facts);
        let has_index = self.lacks(Kind::Index);
        if has_facts || has_index {
            let budget = rendering.budget().clone();
            rendering = run(budget, move || rendering.read_metas().map(|()| rendering)).await??;
        }
        let rendering = Arc::new(rendering);
        if has_facts {
            self.facts(rendering.clone(), base).await?;
        }
        if has_index {
            self.index(rendering).await?;
        }
        if makes_all {
            self.report.not_rebuilt = self
                .left
                .iter()
                .map(|entry| entry.key().to_string())
                .collect();
        }
        Ok(())
    }

    fn lacks(&self, kind: Kind) -> bool {
        self.left.iter().any(|entry| entry.object.kind == kind)
    }

    /// Makes, in one pass over the Shards, the encodings of `all.json` and the layer of the image.
    /// Checks the content hash. `base` is a state whose `all.json.gz` is similar.
    async fn streamed(&mut self, base: Option<&Snapshot>) -> Result<Rendering, SyncError> {
        let snapshot = &*self.plan.snapshot;
        let store = &self.copier.store;
        let shards = Arc::new(PublishedShards::new(store.clone(), [snapshot], base));
        let rendering = Rendering::of_snapshot(snapshot, shards, RenderSettings::default());
        let layer = snapshot.image.as_ref().map(|image| image.layer);
        let mut kinds = Vec::new();
        if !self.copier.options.fetch_all {
            let objects = self.left.iter().map(|entry| entry.object);
            kinds.extend(objects.filter_map(|object| {
                let is_streamed =
                    matches!(object.kind, Kind::All(_)) || layer == Some(object.digest);
                is_streamed.then_some(object.kind)
            }));
        }
        if kinds.is_empty() && !self.lacks(Kind::Index) {
            return Ok(rendering);
        }
        let rendering = Arc::new(rendering);
        let staged = StagedAll::open(&**store, kinds).await?;
        let written = staged.write::<SyncError>(rendering.clone()).await?;
        let facts = written.facts;
        // Before anything is put: the Snapshot contradicts its own Shards, so its origin is not to
        // be trusted.
        if facts.content_hash != snapshot.content_hash {
            return Err(SyncError::Disagrees(self.report.catalog.clone()));
        }
        // The layer is the recorded one but its tar archive is not, by which the configurations
        // name it.
        if let Some(image) = &snapshot.image
            && facts.made.get(&Kind::Blob) == Some(&image.layer)
            && facts.diff_id != Some(image.diff_id)
        {
            let key = Key::Object(Kind::Blob, image.layer.sha256);
            return Err(SyncError::damaged(&key)(ObjectProblem::Content));
        }
        for (kind, object) in written.staged {
            let made = facts.made[&kind].with_kind(kind);
            // Another version of the compressor or of this program may have made other bytes of the
            // same content. They are fetched instead.
            if self.is_left(&made) {
                self.plan.transaction.put_staged(made, object).await?;
                self.done(&made);
            }
        }
        Ok(Arc::into_inner(rendering).expect("the writing has ended and kept nothing"))
    }

    /// Makes the documents of the image. They follow from the digest of its layer alone.
    async fn documents(&mut self) -> Result<(), SyncError> {
        let image = self.plan.snapshot.image.iter();
        let made =
            image.flat_map(|image| oci::Documents::new(image.layer, image.diff_id).into_all());
        for bytes in made {
            self.put(Kind::Blob, bytes).await?;
        }
        Ok(())
    }

    /// Makes the documents about the lines. Packages that `base` has too keep their parts of them.
    async fn facts(
        &mut self,
        rendering: Arc<Rendering>,
        base: Option<&Snapshot>,
    ) -> Result<(), SyncError> {
        // Those of another program are fetched.
        let kinds = FACT_KINDS
            .into_iter()
            .filter(|kind| self.plan.snapshot.facts.contains_key(kind.name))
            .collect();
        let reader = FactReader {
            rendering,
            kinds,
            known: KnownFacts::load(&*self.copier.store, base.into_iter()).await,
            // One thread keeps the reads in one order, which the simulation needs. Most updates
            // change one package.
            workers: 1,
        };
        let facts = run(reader.rendering.budget().clone(), move || reader.read()).await??;
        for document in facts.documents.values() {
            let bytes = document.to_stored().map_err(RenderError::Scratch)?;
            self.put(Kind::Facts, bytes).await?;
        }
        Ok(())
    }

    /// Makes the index, and checks names and counts. An index with other bytes is fetched and
    /// compared with the lines, because nothing but the lines tells if it is right.
    async fn index(&mut self, rendering: Arc<Rendering>) -> Result<(), SyncError> {
        let snapshot = self.plan.snapshot.clone();
        let (is_right, file) = run(rendering.budget().clone(), move || {
            let shards = rendering.shards().iter();
            let found = shards.map(|shard| {
                (
                    shard.metas.len() as u64,
                    IndexedMeta::package_of_all(&shard.metas),
                )
            });
            let recorded = snapshot
                .shards()
                .map(|shard| (shard.metas, Some(&*shard.name)));
            (found.eq(recorded), rendering.index())
        })
        .await?;
        if !is_right {
            return Err(SyncError::Disagrees(self.report.catalog.clone()));
        }
        let file = file.map_err(RenderError::Scratch)?;
        let lines = decode_zstd(&file, Index::MAX_BYTES).map_err(RenderError::Scratch)?;
        for entry in self
            .left
            .iter_mut()
            .filter(|entry| entry.object.kind == Kind::Index)
        {
            entry.content = Some(DecodedContent::Text(Content::of(&lines)));
        }
        if !self.copier.options.fetch_all {
            self.put(Kind::Index, file).await?;
        }
        Ok(())
    }

    /// Puts an object that was made, unless its bytes are others than the recorded ones.
    async fn put(&mut self, kind: Kind, bytes: Vec<u8>) -> Result<(), SyncError> {
        let made = ObjectDigest::of(&bytes).with_kind(kind);
        if self.is_left(&made) {
            self.plan
                .transaction
                .put_verified(made, bytes.into())
                .await?;
            self.done(&made);
        }
        Ok(())
    }

    fn is_left(&self, object: &ObjectRef) -> bool {
        self.left.iter().any(|entry| entry.object == *object)
    }

    fn done(&mut self, made: &ObjectRef) {
        self.left.retain(|entry| entry.object != *made);
        self.report.rebuilt.add(made.digest.size);
        let progress = &self.copier.progress;
        progress.done.fetch_add(1, Ordering::Relaxed);
        progress
            .saved
            .fetch_add(made.digest.size, Ordering::Relaxed);
    }
}
