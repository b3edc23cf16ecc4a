use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use keep::{Examined, Watch, examine};
use layout::{
    CatalogName, Catalogs, Current, Document as _, Key, Named, Outcome, Sha256, Snapshot, SnapshotRef, Stored,
};
use store::{Condition, DOCUMENT_MAX, ObjectInfo, ReadError, StoreExt, Version};

use crate::{Copier, Document, OriginError, Report, SyncError, Tally, judge::judge, origin::collect};

/// What has to be done to bring one catalog up to date. Nothing is written yet.
pub(crate) struct Plan {
    pub(crate) name: CatalogName,
    /// The pointer of the store as it was read.
    pub(crate) ours: Option<Ours>,
    /// The pointer of the origin, byte for byte.
    pub(crate) bytes: Bytes,
    pub(crate) next: Current,
    pub(crate) snapshot: Arc<Snapshot>,
    /// The Snapshot to be put, unless it is there.
    pub(crate) snapshot_bytes: Option<(Bytes, Condition)>,
    pub(crate) missing: Vec<Missing>,
    /// From before the first look at the store.
    pub(crate) watch: Watch,
}

/// `current.json` of the store.
pub(crate) struct Ours {
    pub(crate) bytes: Bytes,
    pub(crate) version: Version,
    /// None if it cannot be read: then it says nothing and may be replaced.
    current: Option<Current>,
}

/// An object that the store lacks, or holds damaged.
#[derive(Debug, Clone)]
pub(crate) struct Missing {
    pub(crate) named: Named,
    pub(crate) condition: Condition,
}

impl Missing {
    /// Whether it can be made of the Shards and the Snapshot.
    pub(crate) const fn is_derived(&self) -> bool {
        is_derived(&self.named.key)
    }
}

/// Whether an object can be made of the Shards and the Snapshot: all but those two, as every part of an image can.
pub(crate) const fn is_derived(key: &Key) -> bool {
    matches!(key, Key::All(..) | Key::Index(..) | Key::Blob(_))
}

impl Plan {
    /// The content that is published until then, if it is another one.
    pub(crate) fn replaced(&self) -> Option<Sha256> {
        let before = self.ours.as_ref()?.current.as_ref()?.content_hash;
        (before != self.next.content_hash).then_some(before)
    }

    /// How it ends once it is carried out.
    pub(crate) fn outcome(&self) -> Outcome {
        let before = self.ours.as_ref().and_then(|ours| ours.current.as_ref());
        match before {
            Some(_) if self.ours.as_ref().is_some_and(|ours| ours.bytes == self.bytes) => Outcome::Unchanged,
            Some(before) if before.content_hash == self.next.content_hash => Outcome::Retagged,
            _ => Outcome::Published,
        }
    }
}

impl Copier {
    /// Compares both sides; `None` if the store is up to date.
    pub(crate) async fn plan(&self, name: &CatalogName, report: &mut Report) -> Result<Option<Plan>, SyncError> {
        report.kept = Tally::default();
        let watch = Watch::start(&*self.store).await?;
        let ours = self.ours(name).await?;
        let before = ours.as_ref().and_then(|ours| ours.current.clone());
        let bytes = match (self.their_current(name, ours.as_ref()).await?, &ours, &before) {
            (Document::Known, Some(ours), Some(before)) if !self.settings.recheck => {
                // What was copied before anybody asked for signatures, or under keys that are trusted no more.
                self.trust(name, &ours.bytes)?;
                report.describe(before);
                return Ok(None);
            }
            (Document::Known, Some(ours), _) => ours.bytes.clone(),
            (Document::Known, None, _) => unreachable!("nothing is known"),
            (Document::Bytes(bytes), ..) => {
                report.moved.add(bytes.len() as u64);
                bytes
            }
        };
        self.trust(name, &bytes)?;
        let next = parse::<Current>(&Key::Current(name.clone()), &bytes)?;
        judge(before.as_ref(), &next, self.settings.allow)?;
        let (snapshot, snapshot_bytes) = self.snapshot(name, &next, report).await?;
        let missing = self.missing(name, before.as_ref(), &snapshot, report).await?;
        if before
            .as_ref()
            .is_none_or(|before| before.content_hash != next.content_hash)
        {
            report.full_bytes = snapshot.all.gzip.size;
        }
        Ok(Some(Plan {
            name: name.clone(),
            ours,
            bytes,
            next,
            snapshot: Arc::new(snapshot),
            snapshot_bytes,
            missing,
            watch,
        }))
    }

    /// Before anything else of the origin is looked at.
    fn trust(&self, name: &CatalogName, bytes: &[u8]) -> Result<(), SyncError> {
        if let Some(trust) = &self.settings.trust {
            trust.verify(name, bytes)?;
        }
        Ok(())
    }

    async fn ours(&self, name: &CatalogName) -> Result<Option<Ours>, SyncError> {
        let key = Key::Current(name.clone());
        match self.store.read_all(&key, DOCUMENT_MAX).await {
            Ok((bytes, info)) => Ok(Some(Ours {
                current: Current::from_bytes(&bytes).ok(),
                bytes,
                version: info.version,
            })),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn their_current(&self, name: &CatalogName, ours: Option<&Ours>) -> Result<Document, SyncError> {
        let known = ours.map(|ours| &ours.bytes[..]);
        match self.origin.document(&Key::Current(name.clone()), known).await {
            Err(OriginError::NotFound(_)) => Err(SyncError::Unknown(name.to_string())),
            read => Ok(read?),
        }
    }

    /// The Snapshot that `next` names, from the store if it is there, else from the origin and how to write it.
    pub(crate) async fn snapshot(
        &self,
        name: &CatalogName,
        next: &Current,
        report: &mut Report,
    ) -> Result<(Snapshot, Option<(Bytes, Condition)>), SyncError> {
        let key = Key::Snapshot(name.clone(), next.content_hash);
        let disagrees = || SyncError::Disagrees {
            catalog: name.to_string(),
        };
        if next.snapshot.key != key.to_string() {
            return Err(disagrees());
        }
        let condition = match self.stored_snapshot(name, next.content_hash, &next.snapshot).await? {
            Ok(snapshot) => return Ok((snapshot, None)),
            Err(condition) => condition,
        };
        let bytes = collect(self.origin.object(&key, DOCUMENT_MAX).await?).await?;
        report.moved.add(bytes.len() as u64);
        if Sha256::of(&bytes) != next.snapshot.sha256 {
            return Err(disagrees());
        }
        let snapshot = parse::<Snapshot>(&key, &bytes)?;
        let size: u64 = snapshot.shards().fold(0, |sum, shard| sum.saturating_add(shard.size));
        if snapshot.content_hash != next.content_hash || snapshot.size != size {
            return Err(disagrees());
        }
        Ok((snapshot, Some((bytes, condition))))
    }

    /// The Snapshot of the store if it is the one referred to, else how to write that one.
    async fn stored_snapshot(
        &self,
        name: &CatalogName,
        hash: Sha256,
        reference: &SnapshotRef,
    ) -> Result<Result<Snapshot, Condition>, SyncError> {
        let key = Key::Snapshot(name.clone(), hash);
        match self.store.read_all(&key, DOCUMENT_MAX).await {
            Ok((bytes, _)) if Sha256::of(&bytes) == reference.sha256 => Ok(Ok(parse(&key, &bytes)?)),
            Ok((_, ObjectInfo { version, .. })) | Err(ReadError::TooLarge { version, .. }) => {
                Ok(Err(Condition::Replace(version)))
            }
            Err(error) if error.is_not_found() => Ok(Err(Condition::CreateOnly)),
            Err(error) => Err(error.into()),
        }
    }

    async fn missing(
        &self,
        name: &CatalogName,
        before: Option<&Current>,
        snapshot: &Snapshot,
        report: &mut Report,
    ) -> Result<Vec<Missing>, SyncError> {
        let trusted = match before.filter(|_| !self.settings.recheck) {
            Some(before) => self.trusted(name, before).await?,
            None => HashMap::new(),
        };
        let (there, unknown): (Vec<_>, Vec<_>) = snapshot
            .objects(name)
            .into_iter()
            .partition(|named| trusted.get(&named.key) == Some(&named.stored));
        there.iter().for_each(|named| self.keep(named, report));
        let looks: Vec<_> = unknown.into_iter().map(|named| self.look(named)).collect();
        let mut looks = stream::iter(looks).buffered(self.settings.in_flight.max(1));
        let mut missing = Vec::new();
        while let Some((named, condition)) = looks.try_next().await? {
            match condition {
                Some(condition) => missing.push(Missing { named, condition }),
                None => self.keep(&named, report),
            }
        }
        let damaged = missing
            .iter()
            .filter(|missing| missing.condition != Condition::CreateOnly);
        report.repaired = damaged.map(|missing| missing.named.key.to_string()).collect();
        self.progress.objects.fetch_add(missing.len() as u64, Ordering::Relaxed);
        Ok(missing)
    }

    fn keep(&self, named: &Named, report: &mut Report) {
        report.kept.add(named.stored.size);
        self.progress.saved.fetch_add(named.stored.size, Ordering::Relaxed);
    }

    /// What the published state of the store names. It was all there before its pointer was written.
    async fn trusted(&self, name: &CatalogName, current: &Current) -> Result<HashMap<Key, Stored>, SyncError> {
        let snapshot = self.stored_snapshot(name, current.content_hash, &current.snapshot);
        let objects = snapshot
            .await?
            .map(|snapshot| snapshot.objects(name))
            .unwrap_or_default();
        Ok(objects.into_iter().map(|named| (named.key, named.stored)).collect())
    }

    /// How to write an object, or `None` if it is there. What a killed run or another catalog left behind is read to
    /// its end before it is relied on.
    pub(crate) async fn look(&self, named: Named) -> Result<(Named, Option<Condition>), SyncError> {
        let found = match examine(&*self.store, &named.key).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return Ok((named, Some(Condition::CreateOnly))),
            Err(error) => return Err(error.into()),
        };
        if is(&named, &found) {
            return Ok((named, None));
        }
        let sound = named.content.is_some() && named.content.map(|content| content.sha256) == found.content;
        if sound && !self.settings.allow.diverged {
            self.nobody_names(&named.key, found.stored).await?;
        }
        tracing::warn!(key = %named.key, "the object is damaged or compressed in another way, and is replaced");
        Ok((named, Some(Condition::Replace(found.version))))
    }

    /// A sound object in another compressed form may be what a published state of the store needs as it is.
    async fn nobody_names(&self, key: &Key, stored: Stored) -> Result<(), SyncError> {
        let catalogs = self.store.read_document::<Catalogs>(&Key::Catalogs).await?;
        for name in catalogs.map(|(catalogs, _)| catalogs.catalogs).unwrap_or_default() {
            let current = self.store.read_document::<Current>(&Key::Current(name.clone())).await?;
            let Some((current, _)) = current else { continue };
            if self.trusted(&name, &current).await?.get(key) == Some(&stored) {
                return Err(SyncError::Recompressed {
                    key: key.to_string(),
                    catalog: name.to_string(),
                });
            }
        }
        Ok(())
    }
}

fn is(named: &Named, found: &Examined) -> bool {
    let content = named.content.map(|content| content.sha256);
    found.stored == named.stored && found.content.is_some() && (content.is_none() || found.content == content)
}

fn parse<T: layout::Document>(key: &Key, bytes: &[u8]) -> Result<T, SyncError> {
    T::from_bytes(bytes).map_err(|source| SyncError::Document {
        key: key.to_string(),
        source,
    })
}

impl Report {
    pub(crate) fn describe(&mut self, current: &Current) {
        self.content_hash = Some(current.content_hash);
        self.serial = Some(current.serial);
    }
}
