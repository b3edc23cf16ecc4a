use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::{StreamExt, TryStreamExt, stream};
use layout::{CatalogName, Catalogs, Current, Document, Key, Sha256, Snapshot};
use store::{DOCUMENT_MAX, Listed, ReadError, Store, StoreExt};

use super::{GcError, GcReport, Settings};

/// Snapshots that are read at a time: each may have megabytes.
const READS: usize = 4;

/// Everything that must stay. It only ever grows: what was named once during a garbage collection stays until the next.
#[derive(Debug)]
pub(super) struct Roots {
    settings: Settings,
    /// By the clock of the store.
    now: SystemTime,
    catalogs: BTreeSet<CatalogName>,
    published: BTreeSet<CatalogName>,
    snapshots: BTreeSet<(CatalogName, Sha256)>,
    named: HashSet<Key>,
}

/// Why a Snapshot must stay.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claim {
    /// It is published, and this names it.
    Published(Arc<Current>),
    /// It was published before, as this remembers. One that is not there claims nothing.
    Earlier(Arc<Current>),
    /// It is about to be published. The same.
    Announced,
}

impl Roots {
    pub(super) fn new(settings: Settings, now: SystemTime) -> Self {
        Self {
            settings,
            now,
            catalogs: BTreeSet::new(),
            published: BTreeSet::new(),
            snapshots: BTreeSet::new(),
            named: HashSet::new(),
        }
    }

    /// Reads what is named now. The order matters: a publication withdraws its Intent after its commit, so whoever sees
    /// no Intent sees its `current.json`.
    pub(super) async fn read(&mut self, store: &dyn Store) -> Result<(), GcError> {
        let listed: Vec<Listed> = store.list("catalogs/").try_collect().await?;
        let mut claims = self.young(&listed);
        // One that was old when it was condemned may have been written anew since.
        let young = listed
            .iter()
            .filter(|listed| !self.is_old(listed.modified))
            .map(|listed| &listed.key);
        let intents: Vec<Key> = young.filter(|key| matches!(key, Key::Intent(..))).cloned().collect();
        self.named.extend(intents);
        let names = store.read_document::<Catalogs>(&Key::Catalogs).await?;
        self.catalogs
            .extend(names.into_iter().flat_map(|(names, _)| names.catalogs));
        // One that is not in the list of names must not lose its objects either.
        self.catalogs
            .extend(listed.into_iter().filter_map(|listed| match listed.key {
                Key::Current(name) => Some(name),
                _ => None,
            }));
        for name in &self.catalogs {
            let current = store.read_document::<Current>(&Key::Current(name.clone())).await?;
            if let Some((current, _)) = current {
                self.published.insert(name.clone());
                claims.extend(self.retained(name, &Arc::new(current)));
            }
        }
        self.mark(store, claims).await
    }

    /// What may be about to be published: what has an Intent, and Snapshots that were just written.
    fn young(&self, listed: &[Listed]) -> BTreeMap<(CatalogName, Sha256), Claim> {
        let young = listed.iter().filter(|listed| !self.is_old(listed.modified));
        let claims = young.filter_map(|listed| match &listed.key {
            Key::Intent(name, hash) | Key::Snapshot(name, hash) => Some(((name.clone(), *hash), Claim::Announced)),
            _ => None,
        });
        claims.collect()
    }

    /// What is published, and the earlier publications that are young enough, counted from when each was replaced:
    /// the state of a catalog that changed for the first time in months must not vanish at once.
    fn retained(&self, name: &CatalogName, current: &Arc<Current>) -> Vec<((CatalogName, Sha256), Claim)> {
        let mut replaced = current.published_at;
        let mut claims = Vec::new();
        for (at, previous) in current.previous.iter().enumerate() {
            let age = self.age(replaced);
            if age < self.settings.grace || at < self.settings.generations && age < self.settings.max_age {
                claims.push(((name.clone(), previous.content_hash), Claim::Earlier(current.clone())));
            }
            replaced = previous.published_at;
        }
        // Last, as the same content may have been published before.
        let published = Claim::Published(current.clone());
        claims.push(((name.clone(), current.content_hash), published));
        claims
    }

    async fn mark(&mut self, store: &dyn Store, claims: BTreeMap<(CatalogName, Sha256), Claim>) -> Result<(), GcError> {
        let unseen = claims.into_iter().filter(|(root, _)| !self.snapshots.contains(root));
        let reads: Vec<_> = unseen.map(|(root, claim)| read(store, root, claim)).collect();
        let mut reads = stream::iter(reads).buffer_unordered(READS);
        while let Some(found) = reads.try_next().await? {
            let Some(((name, hash), snapshot)) = found else {
                continue;
            };
            self.named.insert(Key::Snapshot(name.clone(), hash));
            self.named
                .extend(snapshot.objects(&name).into_iter().map(|named| named.key));
            self.snapshots.insert((name, hash));
        }
        Ok(())
    }

    /// Whether an object must stay. Documents of a catalog go once it has neither a name nor anything published.
    pub(super) fn names(&self, key: &Key) -> bool {
        match key {
            Key::Catalogs | Key::Current(_) | Key::Sweep => true,
            Key::Status(name) | Key::Layers(name) | Key::Notified(name) => self.catalogs.contains(name),
            Key::Snapshot(..) | Key::Index(..) | Key::All(..) | Key::Shard(_) | Key::Blob(_) | Key::Intent(..) => {
                self.named.contains(key)
            }
        }
    }

    /// Whether an object was written before the grace period.
    pub(super) fn is_old(&self, modified: SystemTime) -> bool {
        self.age(modified) > self.settings.grace
    }

    /// What lies in the future is young.
    fn age(&self, time: SystemTime) -> Duration {
        self.now.duration_since(time).unwrap_or_default()
    }

    pub(super) fn report(&self) -> GcReport {
        GcReport {
            dry_run: self.settings.dry_run,
            catalogs: self.published.len(),
            snapshots: self.snapshots.len(),
            ..GcReport::default()
        }
    }
}

type Found = Option<((CatalogName, Sha256), Snapshot)>;

/// What cannot be read might name anything.
async fn read(store: &dyn Store, (name, hash): (CatalogName, Sha256), claim: Claim) -> Result<Found, GcError> {
    let key = Key::Snapshot(name.clone(), hash);
    let bytes = match store.read_all(&key, DOCUMENT_MAX).await {
        Ok((bytes, _)) => bytes,
        Err(error) if error.is_not_found() => match claim {
            Claim::Published(_) => return Err(GcError::Missing(key.to_string())),
            Claim::Earlier(_) | Claim::Announced => return Ok(None),
        },
        Err(error) => return Err(error.into()),
    };
    let unreadable = |source| ReadError::Document {
        key: key.to_string(),
        source,
    };
    let snapshot = Snapshot::from_bytes(&bytes).map_err(unreadable)?;
    let is_other = match claim {
        Claim::Published(current) | Claim::Earlier(current) => current.contradicts(hash, Sha256::of(&bytes)),
        Claim::Announced => false,
    };
    if is_other || snapshot.content_hash != hash {
        return Err(GcError::Mistaken(key.to_string()));
    }
    Ok(Some(((name, hash), snapshot)))
}
