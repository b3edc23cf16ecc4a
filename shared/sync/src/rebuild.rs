//! Objects that follow from the Shards: made here, they need not be moved. Making them also proves that the Snapshot is
//! right about its lines.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use model::{
    CatalogName, Content, Index, IndexedMeta, Key, Kind, ManifestEntry, ObjectDigest, Sha256, Snapshot, StoredDocument,
    decode_zstd,
};
use olm::FACT_KINDS;
use publish::{FactReader, KnownFacts, PublishedShards, Transaction};
use render::{IndexFile, RenderError, RenderSettings, Rendering, Sinks};
use store::bridge;
use upkeep::ObjectProblem;
use work::run;

use crate::{Copier, SyncError, SyncReport, plan::Plan};

impl Copier {
    /// Makes the derived objects and returns those that have to be fetched: all if the options say so, else those that
    /// another version of a compressor or of this program made with other bytes.
    ///
    /// With an index among them, it also checks the content hash, the names and the counts of the Snapshot against the
    /// lines. A Snapshot with other lines than the published one always has a new index.
    pub(crate) async fn rebuild(
        &self,
        plan: &Plan,
        derived: Vec<ManifestEntry>,
        report: &mut SyncReport,
    ) -> Result<Vec<ManifestEntry>, SyncError> {
        report.not_rebuilt.clear();
        if derived.is_empty() {
            return Ok(derived);
        }
        let _permit = self.rebuilds.acquire().await.expect("the semaphore is never closed");
        let layer = plan.snapshot.image.as_ref().map(|image| image.layer);
        let (mut index, mut left) = (None, Vec::new());
        let (mut streamed, mut documents, mut described) = (Vec::new(), Vec::new(), Vec::new());
        for entry in derived {
            match entry.object.kind {
                Kind::Index => index = Some(entry),
                _ if !self.options.rebuild => left.push(entry),
                Kind::Facts => described.push(entry),
                Kind::Blob if layer != Some(entry.object.digest) => documents.push(entry),
                _ => streamed.push(entry),
            }
        }
        let mut rebuild = Rebuild {
            copier: self,
            snapshot: &plan.snapshot,
            transaction: &plan.transaction,
            report,
            left,
        };
        let rendering_with = |base| {
            let shards = Arc::new(PublishedShards::new(self.store.clone(), [&*plan.snapshot], base));
            Rendering::of_snapshot(&plan.snapshot, shards, RenderSettings::default())
        };
        let mut rendering = rendering_with(None);
        if index.is_some() || !streamed.is_empty() {
            let base = plan.transaction.base_snapshot().await.ok().flatten();
            let made = rebuild
                .streamed(&plan.name, rendering_with(base), streamed.clone())
                .await;
            rendering = match made {
                // The published state may be what is damaged.
                Err(SyncError::Rebuild(error)) if base.is_some() && error.is_damage() => {
                    rebuild.streamed(&plan.name, rendering, streamed).await?
                }
                made => made?,
            };
        }
        rebuild.documents(documents).await?;
        if index.is_some() || !described.is_empty() {
            rendering = run(rendering.budget().clone(), move || {
                rendering.read_metas().map(|()| rendering)
            })
            .await??;
        }
        if !described.is_empty() {
            rendering = rebuild.described(rendering, described).await?;
        }
        if let Some(index) = index {
            rebuild.index(&plan.name, rendering, index).await?;
        }
        let left = rebuild.left;
        if self.options.rebuild {
            report.not_rebuilt = left.iter().map(|entry| entry.key().to_string()).collect();
        }
        Ok(left)
    }
}

/// Rebuild of the derived objects of one copy.
struct Rebuild<'a> {
    copier: &'a Copier,
    snapshot: &'a Snapshot,
    transaction: &'a Transaction,
    report: &'a mut SyncReport,
    /// Objects that have to be fetched.
    left: Vec<ManifestEntry>,
}

impl Rebuild<'_> {
    /// Makes, in one pass over the Shards, the encodings of `all.json` and the layer of the image. Checks the content hash.
    async fn streamed(
        &mut self,
        name: &CatalogName,
        rendering: Rendering,
        entries: Vec<ManifestEntry>,
    ) -> Result<Rendering, SyncError> {
        let mut sinks = Sinks::default();
        let mut stagings = Vec::new();
        for entry in entries {
            let (writer, staging) = bridge(self.copier.store.stage().await?);
            sinks.insert(entry.object.kind, Box::new(writer));
            stagings.push((entry, staging));
        }
        let (rendering, facts) = run(rendering.budget().clone(), move || {
            let facts = rendering.write_all(sinks);
            (rendering, facts)
        })
        .await?;
        let mut staged = Vec::new();
        for (entry, staging) in stagings {
            // If the store failed, writing failed because of that. So the error of the store comes first.
            staged.push((entry, staging.await??));
        }
        let facts = facts?;
        // Before anything is put: the Snapshot contradicts its own Shards, so its origin is not to be trusted.
        if facts.content_hash != self.snapshot.content_hash {
            return Err(SyncError::Disagrees(name.clone()));
        }
        // The layer is the recorded one but its tar archive is not, by which the configurations name it.
        if let Some(image) = &self.snapshot.image
            && facts.made.get(&Kind::Blob) == Some(&image.layer)
            && facts.diff_id != Some(image.diff_id)
        {
            return Err(SyncError::Damaged {
                key: Key::Object(Kind::Blob, image.layer.sha256).to_string(),
                source: ObjectProblem::Content,
            });
        }
        for (entry, staged) in staged {
            if facts.made.get(&entry.object.kind) == Some(&entry.object.digest) {
                self.transaction.put_staged(entry.object, staged).await?;
                self.count(entry.object.digest);
            } else {
                // Another version of the compressor or of this program made other bytes of the same content. They are
                // fetched instead.
                self.left.push(entry);
            }
        }
        Ok(rendering)
    }

    /// Makes the documents of the image. They follow from the digest of its layer alone.
    async fn documents(&mut self, entries: Vec<ManifestEntry>) -> Result<(), SyncError> {
        let image = self.snapshot.image.iter();
        let made = image.flat_map(|image| oci::Documents::new(image.layer, image.diff_id).into_all());
        self.put_made(made, entries).await
    }

    /// Makes the documents about the lines. Packages that the published state has too keep their parts of them.
    async fn described(&mut self, rendering: Rendering, entries: Vec<ManifestEntry>) -> Result<Rendering, SyncError> {
        let base = self.transaction.base_snapshot().await.ok().flatten();
        // Those of another program are fetched.
        let kinds = FACT_KINDS.into_iter();
        let kinds = kinds.filter(|kind| self.snapshot.facts.contains_key(kind.name));
        let reader = FactReader {
            rendering,
            kinds: kinds.collect(),
            known: KnownFacts::load(&*self.copier.store, base.into_iter()).await,
            // One thread keeps the reads in one order, which the simulation needs. Most updates change one package.
            workers: 1,
        };
        let (rendering, facts) = run(reader.rendering.budget().clone(), move || {
            let facts = reader.read();
            (reader.rendering, facts)
        })
        .await?;
        let facts = facts?;
        let stored = facts.documents.values().map(StoredDocument::to_stored);
        let stored = stored.collect::<Result<Vec<_>, _>>().map_err(RenderError::Scratch)?;
        self.put_made(stored.into_iter(), entries).await?;
        Ok(rendering)
    }

    /// Puts those of the entries that were made with the recorded bytes.
    async fn put_made(
        &mut self,
        made: impl Iterator<Item = Vec<u8>>,
        entries: Vec<ManifestEntry>,
    ) -> Result<(), SyncError> {
        let mut made: HashMap<Sha256, Vec<u8>> = made.map(|bytes| (Sha256::of(&bytes), bytes)).collect();
        for entry in entries {
            match made.remove(&entry.object.digest.sha256) {
                Some(bytes) => self.put(&entry, bytes).await?,
                None => self.left.push(entry),
            }
        }
        Ok(())
    }

    /// Makes the index, and checks names and counts. An index with other bytes is fetched and compared with the lines,
    /// because nothing but the lines tells if it is right.
    async fn index(
        &mut self,
        name: &CatalogName,
        mut rendering: Rendering,
        mut entry: ManifestEntry,
    ) -> Result<(), SyncError> {
        let (found, file) = run(rendering.budget().clone(), move || {
            let shards = rendering.shards().iter();
            let found: Vec<_> = shards
                .map(|shard| {
                    let name = IndexedMeta::package_of_all(&shard.metas).map(str::to_owned);
                    (shard.metas.len() as u64, name)
                })
                .collect();
            let file = rendering.take_index().map_err(RenderError::Scratch)?;
            Ok::<_, RenderError>((found, file))
        })
        .await??;
        let recorded = self
            .snapshot
            .shards()
            .map(|shard| (shard.metas, Some(shard.name.clone())));
        if !recorded.eq(found) {
            return Err(SyncError::Disagrees(name.clone()));
        }
        let IndexFile { bytes, stored } = file;
        if stored == entry.object.digest && self.copier.options.rebuild {
            return self.put(&entry, bytes).await;
        }
        let lines = decode_zstd(&bytes, Index::MAX_BYTES).map_err(RenderError::Scratch)?;
        entry.content = Some(Content::of(&lines));
        self.left.push(entry);
        Ok(())
    }

    async fn put(&mut self, entry: &ManifestEntry, bytes: Vec<u8>) -> Result<(), SyncError> {
        self.transaction.put_verified(entry.object, bytes.into()).await?;
        self.count(entry.object.digest);
        Ok(())
    }

    fn count(&mut self, digest: ObjectDigest) {
        self.report.rebuilt.add(digest.size);
        self.copier.progress.done.fetch_add(1, Ordering::Relaxed);
        self.copier.progress.saved.fetch_add(digest.size, Ordering::Relaxed);
    }
}
