use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use image::Digest;
use keep::{Watch, add_name};
use layout::{
    BroughtBack, CatalogName, Current, Document, Key, Outcome, Previous, RENDER_VERSION, Sha256, Snapshot, SnapshotRef,
    SourceRef,
};
use render::Rendering;
use store::{Condition, DOCUMENT_MAX, ReadError, StoreExt, Version};

use crate::{
    Catalog, Changes, Mirror, PollError, Report, Surroundings,
    approve::approve,
    guard,
    pointer::{Seal, read_pointer},
    publish::{Publisher, Written},
    published::PublishedShards,
};

/// The wait before a lost race is run again.
const RACE_PAUSE: Duration = Duration::from_millis(50);

/// What the cheap part of a turn found.
pub(crate) enum Seen {
    /// The digest is known: the turn has ended.
    Known(Outcome),
    /// It is not, or not to be relied on: the image has to be pulled.
    New(Option<Box<Read>>, Digest),
}

/// Only the cheap part of a turn: nothing is pulled.
pub(crate) async fn look(mirror: &Mirror, catalog: &Catalog, report: &mut Report) -> Result<Seen, PollError> {
    let turn = Turn {
        mirror,
        catalog,
        force: false,
        trusted: true,
    };
    for attempt in 0..mirror.settings.attempts {
        match turn.look(report).await {
            Err(error) if error.is_race() => pause(&mirror.settings.surroundings, &catalog.name, attempt, &error).await,
            done => return done,
        }
    }
    Err(PollError::Contended {
        attempts: mirror.settings.attempts,
    })
}

/// One turn, started again when another writer was faster or something published turned out to be damaged.
pub(crate) async fn run(
    mirror: &Mirror,
    catalog: &Catalog,
    force: bool,
    report: &mut Report,
) -> Result<Outcome, PollError> {
    let mut trusted = true;
    for attempt in 0..mirror.settings.attempts {
        let turn = Turn {
            mirror,
            catalog,
            force,
            trusted,
        };
        match turn.run(report).await {
            Err(error) if trusted && error.is_damage() => {
                tracing::warn!(catalog = %catalog.name, error = telemetry::chain(&error), "everything is written anew");
                trusted = false;
            }
            Err(error) if error.is_race() => pause(&mirror.settings.surroundings, &catalog.name, attempt, &error).await,
            done => return done,
        }
    }
    Err(PollError::Contended {
        attempts: mirror.settings.attempts,
    })
}

/// Waits before a lost race is run again, a little longer each time.
pub(crate) async fn pause(surroundings: &Surroundings, catalog: &CatalogName, attempt: u32, error: &PollError) {
    tracing::info!(%catalog, attempt, error = telemetry::chain(error), "starting again");
    tokio::time::sleep(surroundings.jittered(RACE_PAUSE * 2_u32.pow(attempt))).await;
}

struct Turn<'a> {
    mirror: &'a Mirror,
    catalog: &'a Catalog,
    force: bool,
    /// Whether what is published can be relied on: one damaged Shard, and all are made and checked again.
    trusted: bool,
}

/// The pointer as it was read, to be replaced.
pub(crate) struct Read {
    pub(crate) current: Current,
    pub(crate) version: Version,
    /// Whether it comes from whom it should. Nothing that it says is made one's own by signing it, if not.
    pub(crate) believed: bool,
}

impl Turn<'_> {
    async fn run(&self, report: &mut Report) -> Result<Outcome, PollError> {
        match self.look(report).await? {
            Seen::Known(outcome) => Ok(outcome),
            Seen::New(read, digest) => self.pull_and_publish(read.map(|read| *read), &digest, report).await,
        }
    }

    async fn look(&self, report: &mut Report) -> Result<Seen, PollError> {
        let read = self.read_current().await?;
        let digest = self.digest().await?;
        report.digest = Some(digest.to_string());
        report.describe(read.as_ref().map(|read| &read.current));
        match read {
            Some(read) if self.is_known(&read, &digest) => {
                let source = self.approved(Some(&read), &digest).await?;
                let brought_back = read.current.brought_back.clone();
                let swapped = self.swap_source(read, source, brought_back, report).await;
                swapped.map(Seen::Known)
            }
            read => Ok(Seen::New(read.map(Box::new), digest)),
        }
    }

    async fn read_current(&self) -> Result<Option<Read>, PollError> {
        read_pointer(
            &*self.mirror.store,
            &self.catalog.name,
            self.mirror.settings.signer.as_ref(),
        )
        .await
    }

    /// A pinned digest is believed, not looked up.
    async fn digest(&self) -> Result<Digest, PollError> {
        if let Some(pinned) = self.catalog.source.pinned() {
            return Ok(pinned.clone());
        }
        let _permit = self
            .mirror
            .resolving
            .acquire()
            .await
            .expect("the semaphore is never closed");
        Ok(self.mirror.images.resolve(&self.catalog.source).await?)
    }

    fn is_known(&self, read: &Read, digest: &Digest) -> bool {
        let current = &read.current;
        let same = current.render_version == RENDER_VERSION && current.source.digest == digest.to_string();
        same && read.believed && !self.force
    }

    /// Same content: readers must not notice more than a new source. Nothing is written when that is the same too.
    async fn swap_source(
        &self,
        read: Read,
        source: SourceRef,
        brought_back: Option<BroughtBack>,
        report: &mut Report,
    ) -> Result<Outcome, PollError> {
        let next = Current {
            source,
            brought_back,
            render_version: RENDER_VERSION,
            availability: self.catalog.availability,
            ..read.current.clone()
        };
        report.describe(Some(&next));
        let next = self.seal().again(&read.current, next)?;
        if next == read.current {
            return Ok(Outcome::Unchanged);
        }
        self.write_current(&next, Condition::Replace(read.version)).await?;
        Ok(Outcome::Retagged)
    }

    async fn pull_and_publish(
        &self,
        read: Option<Read>,
        digest: &Digest,
        report: &mut Report,
    ) -> Result<Outcome, PollError> {
        let source = self.approved(read.as_ref(), digest).await?;
        let _permit = self
            .mirror
            .rendering
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let mut watch = Watch::start(&*self.mirror.store).await?;
        // What is not believed is neither a base to build on nor one to compare with.
        let previous = match read.as_ref().filter(|read| read.believed) {
            Some(read) => self.read_snapshot(&read.current).await?,
            None => None,
        };
        let published = PublishedShards::new(self.mirror.store.clone(), previous.as_ref().filter(|_| self.trusted));
        let published = Arc::new(published);
        let rendering = self.pull(digest, published.clone(), report).await?;
        match read {
            Some(read)
                if previous
                    .as_ref()
                    .is_some_and(|previous| self.is_same(&rendering, previous)) =>
            {
                // What was brought back is what the source has, after all.
                self.swap_source(read, source, None, report).await
            }
            read => {
                if !self.force {
                    guard::check(&rendering, previous.as_ref())?;
                }
                let (snapshot, reference) = self.publish(rendering, &published, report).await?;
                report.changes = Changes::between(previous.as_ref(), &snapshot);
                if let Some(before) = &read {
                    let named = (snapshot.content_hash, &*history(Some(before)));
                    watch.spare_forgotten(&before.current, named, self.mirror.settings.surroundings.now());
                }
                let announced = watch.settle(&*self.mirror.store, &self.catalog.name, &snapshot).await?;
                let outcome = self.commit(read, &snapshot, reference, source, report).await?;
                announced.withdraw(&*self.mirror.store).await;
                Ok(outcome)
            }
        }
    }

    /// A Snapshot without an image is an older version's: it is published again, to get one.
    fn is_same(&self, rendering: &Rendering, previous: &Snapshot) -> bool {
        self.trusted && previous.image.is_some() && rendering.equals(previous)
    }

    /// A Snapshot that is lost, unreadable or not the one that was published is no reason not to publish a new one.
    async fn read_snapshot(&self, current: &Current) -> Result<Option<Snapshot>, PollError> {
        let key = Key::Snapshot(self.catalog.name.clone(), current.content_hash);
        let bytes = match self.mirror.store.read_all(&key, DOCUMENT_MAX).await {
            Ok((bytes, _)) => bytes,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(ReadError::Store(error)) => return Err(error.into()),
            Err(error) => return Ok(unusable(&key, &error)),
        };
        if Sha256::of(&bytes) != current.snapshot.sha256 {
            tracing::warn!(%key, "the published snapshot is not the one that current.json names");
            return Ok(None);
        }
        Ok(Snapshot::from_bytes(&bytes).map_or_else(|error| unusable(&key, &error), Some))
    }

    async fn publish(
        &self,
        rendering: Rendering,
        published: &PublishedShards,
        report: &mut Report,
    ) -> Result<(Snapshot, SnapshotRef), PollError> {
        let publisher = Publisher {
            store: &self.mirror.store,
            catalog: &self.catalog.name,
            published,
            identity: self.mirror.settings.identity,
            wary: !self.trusted,
            written: Written::default(),
        };
        let result = publisher.publish(rendering).await;
        report.objects_published += publisher.written.objects.load(Ordering::Relaxed);
        report.bytes_published += publisher.written.bytes.load(Ordering::Relaxed);
        result
    }

    async fn commit(
        &self,
        read: Option<Read>,
        snapshot: &Snapshot,
        reference: SnapshotRef,
        source: SourceRef,
        report: &mut Report,
    ) -> Result<Outcome, PollError> {
        let current = read.as_ref().map(|read| &read.current);
        let next = Current {
            serial: current.map_or(1, |current| current.serial.saturating_add(1)),
            content_hash: snapshot.content_hash,
            snapshot: reference,
            source,
            render_version: RENDER_VERSION,
            published_at: self.mirror.settings.surroundings.now(),
            brought_back: None,
            availability: self.catalog.availability,
            previous: history(read.as_ref()),
            signatures: Vec::new(),
        };
        let next = self.seal().sealed(current, next)?;
        let condition = match read {
            Some(read) => Condition::Replace(read.version),
            None => {
                // Before the commit: a name without a catalog is harmless, a catalog without a name is never found. And
                // after it was announced, or whoever removes the catalog could take the name once more.
                add_name(&*self.mirror.store, &self.catalog.name).await?;
                Condition::CreateOnly
            }
        };
        self.write_current(&next, condition).await?;
        report.describe(Some(&next));
        Ok(Outcome::Published)
    }

    async fn write_current(&self, current: &Current, condition: Condition) -> Result<(), PollError> {
        let key = Key::Current(self.catalog.name.clone());
        self.mirror.store.write_document(&key, current, condition).await?;
        Ok(())
    }

    fn seal(&self) -> Seal<'_> {
        Seal {
            signer: self.mirror.settings.signer.as_ref(),
            catalog: &self.catalog.name,
            may_unsign: self.force,
        }
    }

    /// The source with that digest, verified if that is asked for. A forced turn verifies again.
    async fn approved(&self, read: Option<&Read>, digest: &Digest) -> Result<SourceRef, PollError> {
        let believed = read.filter(|read| read.believed && !self.force);
        let known = believed.map(|read| &read.current.source);
        Ok(SourceRef {
            reference: self.catalog.source.to_string(),
            digest: digest.to_string(),
            verified: approve(self.mirror, self.catalog, digest, known).await?,
        })
    }

    async fn pull(
        &self,
        digest: &Digest,
        published: Arc<PublishedShards>,
        report: &mut Report,
    ) -> Result<Rendering, PollError> {
        crate::pull::pull(self.mirror, self.catalog, digest, published, report).await
    }
}

/// What the next publication remembers. A history that nobody vouches for is not made one's own.
fn history(read: Option<&Read>) -> Vec<Previous> {
    let believed = read.filter(|read| read.believed);
    believed.map(|read| read.current.as_previous()).unwrap_or_default()
}

fn unusable(key: &Key, error: &(dyn std::error::Error + 'static)) -> Option<Snapshot> {
    tracing::warn!(%key, error = telemetry::chain(error), "the published snapshot is unreadable");
    None
}

impl Report {
    pub(crate) fn describe(&mut self, current: Option<&Current>) {
        self.content_hash = current.map(|current| current.content_hash);
        self.serial = current.map(|current| current.serial);
    }
}
