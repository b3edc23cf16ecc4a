use std::{
    collections::HashMap,
    io::{self, Write},
    sync::{Arc, atomic::Ordering},
};

use layout::{Content, Form, Image, Key, Sha256, Snapshot, Stored};
use render::{AllFacts, Published, RenderError, Rendering, Sinks};
use store::{Staged, Store, StoreExt, bridge};
use tokio::{runtime::Handle, task::spawn_blocking};

use crate::{Copier, Flaw, Report, SyncError, plan::Missing};

impl Copier {
    /// Makes what can be made of the Shards and the Snapshot, and returns what came out otherwise than it was recorded, because another
    /// version of a compressor or of this program made it: that has to be moved.
    pub(crate) async fn rebuild(
        &self,
        snapshot: &Arc<Snapshot>,
        derived: Vec<Missing>,
        report: &mut Report,
    ) -> Result<Vec<Missing>, SyncError> {
        if derived.is_empty() {
            return Ok(derived);
        }
        let _permit = self.rebuilding.acquire().await.expect("the semaphore is never closed");
        let shards = Arc::new(Shards::new(self.store.clone(), snapshot));
        let rendering = Rendering::again(snapshot, shards, render::Settings::default());
        let (forms, others): (Vec<_>, Vec<_>) = derived
            .into_iter()
            .partition(|missing| is_form(snapshot, &missing.named.key));
        let (index, documents): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|missing| matches!(missing.named.key, Key::Index(..)));
        let (rendering, mut left) = self.rebuild_forms(snapshot, rendering, forms, report).await?;
        left.extend(self.rebuild_documents(snapshot, documents, report).await?);
        left.extend(self.rebuild_index(rendering, index, report).await?);
        report.not_rebuilt = left.iter().map(|missing| missing.named.key.to_string()).collect();
        Ok(left)
    }

    async fn rebuild_forms(
        &self,
        snapshot: &Snapshot,
        rendering: Rendering,
        forms: Vec<Missing>,
        report: &mut Report,
    ) -> Result<(Rendering, Vec<Missing>), SyncError> {
        let mut sinks = Sinks::default();
        let mut stagings = Vec::new();
        for missing in forms {
            let (writer, staging) = bridge(self.store.stage().await?);
            *sink(&mut sinks, &missing.named.key) = Some(Box::new(writer));
            stagings.push((missing, staging));
        }
        if stagings.is_empty() {
            return Ok((rendering, Vec::new()));
        }
        let (rendering, facts) = spawn_blocking(move || {
            let facts = rendering.write_all(sinks);
            (rendering, facts)
        })
        .await?;
        let mut staged = Vec::new();
        for (missing, staging) in stagings {
            // A store that failed made the writing fail: its error is the cause.
            staged.push((missing, staging.await??));
        }
        let left = self.commit_forms(snapshot, &facts?, staged, report).await?;
        Ok((rendering, left))
    }

    async fn commit_forms(
        &self,
        snapshot: &Snapshot,
        facts: &AllFacts,
        staged: Vec<(Missing, Box<dyn Staged>)>,
        report: &mut Report,
    ) -> Result<Vec<Missing>, SyncError> {
        let mut left = Vec::new();
        for (missing, staged) in staged {
            let named = &missing.named;
            if facts.content_hash != snapshot.content_hash || contradicts(facts, snapshot) {
                return Err(SyncError::Flawed {
                    key: named.key.to_string(),
                    source: Flaw::Content,
                });
            }
            if made(facts, &named.key) == Some(named.stored) {
                let put = staged.commit(&named.key, missing.condition.clone()).await;
                self.is_there(named, put).await?;
                self.rebuilt(named.stored, report);
            } else {
                left.push(missing);
            }
        }
        Ok(left)
    }

    /// The documents of the image follow from its layer, which only has to be known, not to be there.
    async fn rebuild_documents(
        &self,
        snapshot: &Snapshot,
        documents: Vec<Missing>,
        report: &mut Report,
    ) -> Result<Vec<Missing>, SyncError> {
        let made: HashMap<Key, Vec<u8>> = snapshot.image.iter().flat_map(image_documents).collect();
        let mut left = Vec::new();
        for missing in documents {
            let Some(bytes) = made.get(&missing.named.key) else {
                left.push(missing);
                continue;
            };
            let put = self
                .store
                .put(&missing.named.key, bytes.clone().into(), missing.condition);
            self.is_there(&missing.named, put.await).await?;
            self.rebuilt(missing.named.stored, report);
        }
        Ok(left)
    }

    /// Nothing but the lines themselves vouches for the content of an index, so one that has to be moved is checked
    /// against what they say.
    async fn rebuild_index(
        &self,
        mut rendering: Rendering,
        index: Vec<Missing>,
        report: &mut Report,
    ) -> Result<Option<Missing>, SyncError> {
        let Some(mut missing) = index.into_iter().next() else {
            return Ok(None);
        };
        let file = spawn_blocking(move || {
            rendering.read_metas()?;
            rendering.take_index().map_err(RenderError::Scratch)
        })
        .await??;
        let named = &mut missing.named;
        let stored = Stored {
            size: file.bytes.len() as u64,
            sha256: Sha256::of(&file.bytes),
        };
        if stored != named.stored {
            named.content = Some(Content {
                sha256: file.content,
                size: file.size,
            });
            return Ok(Some(missing));
        }
        let put = self.store.put(&named.key, file.bytes.into(), missing.condition).await;
        self.is_there(&missing.named, put).await?;
        self.rebuilt(stored, report);
        Ok(None)
    }

    fn rebuilt(&self, stored: Stored, report: &mut Report) {
        report.rebuilt.add(stored.size);
        self.progress.done.fetch_add(1, Ordering::Relaxed);
        self.progress.saved.fetch_add(stored.size, Ordering::Relaxed);
    }
}

/// What is made in one pass over the Shards: the forms of `all.json`, and the layer of the image.
fn is_form(snapshot: &Snapshot, key: &Key) -> bool {
    match key {
        Key::All(..) => true,
        Key::Blob(sha256) => snapshot
            .image
            .as_ref()
            .is_some_and(|image| image.layer.sha256 == *sha256),
        _ => false,
    }
}

/// Whether the layer is the recorded one and its tar archive is not, by which the configurations name it.
fn contradicts(facts: &AllFacts, snapshot: &Snapshot) -> bool {
    let pair = facts.layer.zip(snapshot.image.as_ref());
    pair.is_some_and(|(made, image)| made.stored == image.layer && made.diff_id != image.diff_id)
}

fn image_documents(image: &Image) -> impl Iterator<Item = (Key, Vec<u8>)> {
    let documents = oci::Documents::new(image.layer, image.diff_id).into_all();
    documents.map(|bytes| (Key::Blob(Sha256::of(&bytes)), bytes))
}

fn sink<'a>(sinks: &'a mut Sinks, key: &Key) -> &'a mut Option<Box<dyn Write + Send>> {
    match key {
        Key::All(_, _, Form::Zstd) => &mut sinks.zstd,
        Key::All(_, _, Form::Gzip) => &mut sinks.gzip,
        Key::Blob(_) => &mut sinks.layer,
        _ => &mut sinks.identity,
    }
}

fn made(facts: &AllFacts, key: &Key) -> Option<Stored> {
    match key {
        Key::All(_, _, Form::Zstd) => facts.zstd,
        Key::All(_, _, Form::Gzip) => facts.gzip,
        Key::Blob(_) => facts.layer.map(|layer| layer.stored),
        _ => facts.identity,
    }
}

/// The Shards of a Snapshot, which are all in the store by now, for the threads that render.
struct Shards {
    store: Arc<dyn Store>,
    runtime: Handle,
    sizes: HashMap<Sha256, u64>,
}

impl Shards {
    /// Must be called inside a runtime.
    fn new(store: Arc<dyn Store>, snapshot: &Snapshot) -> Self {
        Self {
            store,
            runtime: Handle::current(),
            sizes: snapshot
                .shards()
                .map(|shard| (shard.sha256, shard.stored.size))
                .collect(),
        }
    }
}

impl Published for Shards {
    fn contains(&self, sha256: &Sha256) -> bool {
        self.sizes.contains_key(sha256)
    }

    fn load(&self, sha256: &Sha256) -> io::Result<Vec<u8>> {
        let size = *self.sizes.get(sha256).ok_or(io::ErrorKind::NotFound)?;
        let key = Key::Shard(*sha256);
        let reading = self.store.read_all(&key, size);
        self.runtime
            .block_on(reading)
            .map(|(bytes, _)| bytes.into())
            .map_err(io::Error::other)
    }
}
