//! A store with one catalog, receivers that note what they are told, and reports as turns give them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};

use async_trait::async_trait;
use layout::{
    Availability, CatalogName, Current, Document, Key, Mark, Notified, Outcome, RENDER_VERSION, Sha256, ShardRef,
    Snapshot, SnapshotRef, SourceRef, Stored, Whole,
};
use notify::{Event, Notifier, Receiver, SendError, Settings};
use poll::{Changes, Report};
use store::{Condition, MemoryStore, StoreExt};

/// Packages by name, with something that stands for their content.
pub(crate) type Packages<'a> = &'a [(&'a str, &'a str)];

pub(crate) fn name() -> CatalogName {
    "v4.20".parse().unwrap()
}

fn stored() -> Stored {
    Stored {
        size: 1,
        sha256: Sha256::of(b""),
    }
}

pub(crate) fn snapshot(packages: Packages<'_>) -> Snapshot {
    let shard = |(name, content): &(&str, &str)| ShardRef {
        name: (*name).to_owned(),
        sha256: Sha256::of(content.as_bytes()),
        size: 1,
        metas: 1,
        stored: stored(),
    };
    Snapshot {
        render_version: RENDER_VERSION,
        content_hash: Sha256::of(format!("{packages:?}").as_bytes()),
        size: 1,
        metas: 1,
        all: Whole {
            zstd: stored(),
            gzip: stored(),
            identity: None,
        },
        index: stored(),
        global: None,
        packages: packages.iter().map(shard).collect(),
        image: None,
    }
}

/// Publishes as a turn does, and returns its report.
pub(crate) async fn publish(store: &MemoryStore, packages: Packages<'_>) -> Report {
    let snapshot = snapshot(packages);
    let key = Key::Snapshot(name(), snapshot.content_hash);
    store.write_document(&key, &snapshot, Condition::Always).await.unwrap();
    let key = Key::Current(name());
    let before = store
        .read_document::<Current>(&key)
        .await
        .unwrap()
        .map(|(current, _)| current);
    let serial = before.as_ref().map_or(1, |before| before.serial + 1);
    let current = Current {
        serial,
        content_hash: snapshot.content_hash,
        snapshot: SnapshotRef::new(&name(), snapshot.content_hash, &snapshot.to_bytes()),
        source: SourceRef {
            reference: "quay.io/ns/catalog:v4.20".into(),
            digest: "sha256:00".into(),
            verified: None,
        },
        render_version: RENDER_VERSION,
        published_at: UNIX_EPOCH + Duration::from_secs(1_790_000_000 + serial),
        brought_back: None,
        availability: Availability::Available,
        signatures: Vec::new(),
        previous: before.as_ref().map(Current::as_previous).unwrap_or_default(),
    };
    store.write_document(&key, &current, Condition::Always).await.unwrap();
    report(Outcome::Published, Some((&current).into()))
}

/// The report of a later poll that found nothing new.
pub(crate) async fn unchanged(store: &MemoryStore) -> Report {
    let current = store.read_document::<Current>(&Key::Current(name())).await.unwrap();
    report(Outcome::Unchanged, current.map(|(current, _)| (&current).into()))
}

pub(crate) fn report(outcome: Outcome, published: Option<Mark>) -> Report {
    Report {
        catalog: name(),
        outcome,
        error: None,
        digest: None,
        content_hash: published.map(|published| published.content_hash),
        serial: published.map(|published| published.serial),
        changes: Changes::default(),
        bytes_pulled: 0,
        layers_fetched: 0,
        layers_skipped: 0,
        objects_published: 0,
        bytes_published: 0,
        duration: Duration::ZERO,
    }
}

pub(crate) async fn marks(store: &MemoryStore) -> BTreeMap<String, Option<u64>> {
    let found = store.read_document::<Notified>(&Key::Notified(name())).await.unwrap();
    let marks = found.map(|(notified, _)| notified.receivers).unwrap_or_default();
    marks
        .into_iter()
        .map(|(name, mark)| (name, mark.map(|mark| mark.serial)))
        .collect()
}

/// What a receiver does with an event.
type Answer = dyn Fn(usize) -> Result<(), SendError> + Send + Sync;

/// A receiver that notes what it is sent. Clones are handles on the same one.
#[derive(Clone)]
pub(crate) struct Ear {
    name: &'static str,
    heard: Arc<Mutex<Vec<Event>>>,
    answer: Arc<Mutex<Arc<Answer>>>,
}

impl std::fmt::Debug for Ear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Ear {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            heard: Arc::default(),
            answer: Arc::new(Mutex::new(Arc::new(|_| Ok(())))),
        }
    }

    /// Answers so from now on; the number counts its sendings from 0.
    pub(crate) fn answers(&self, answer: impl Fn(usize) -> Result<(), SendError> + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Arc::new(answer);
    }

    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }

    /// What it was sent since the last time: serials before and after, and the packages.
    pub(crate) fn told(&self) -> Vec<(Option<u64>, u64, Option<Changes>)> {
        let tell = |event: Event| {
            let data = event.data;
            (
                data.previous.map(|previous| previous.serial),
                data.published.serial,
                data.packages,
            )
        };
        self.take().into_iter().map(tell).collect()
    }
}

#[async_trait]
impl Receiver for Ear {
    fn name(&self) -> &str {
        self.name
    }

    async fn send(&self, event: &Event) -> Result<(), SendError> {
        let mut heard = self.heard.lock().unwrap();
        heard.push(event.clone());
        let answer = self.answer.lock().unwrap().clone();
        answer(heard.len() - 1)
    }
}

pub(crate) fn notifier(store: &MemoryStore, ears: &[&Ear]) -> Notifier {
    let receivers = ears.iter().map(|ear| Box::new((*ear).clone()) as Box<dyn Receiver>);
    Notifier::new(Arc::new(store.clone()), receivers.collect(), Settings::default())
}

pub(crate) fn changes(added: &[&str], removed: &[&str], changed: &[&str]) -> Option<Changes> {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Some(Changes {
        added: texts(added),
        removed: texts(removed),
        changed: texts(changed),
    })
}

pub(crate) fn down() -> SendError {
    SendError::temporary("it is down")
}
