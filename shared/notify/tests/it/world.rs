//! A store with one catalog, receivers that record their events, and reports of polls.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use catalog_mirror_notify::{Event, Notifier, NotifierSettings, Receiver, SendError};
use model::{
    CatalogName, Current, Key, Kind, Notified, ObjectDigest, Outcome, PublicationId, Snapshot, StoredDocument,
};
use publish::{ChangedPackages, Report};
use store::{Condition, Store, StoreExt};
use storekit::MemoryStore;
use testkit::{CurrentBuilder, SnapshotBuilder};

/// Packages by name, each with a text in place of its content.
pub(crate) type Packages<'a> = &'a [(&'a str, &'a str)];

pub(crate) fn name() -> CatalogName {
    "v4.20".parse().unwrap()
}

pub(crate) fn snapshot(packages: Packages<'_>) -> Snapshot {
    let line = |name: &str, content: &str| format!("{{\"name\":\"{name}\",\"schema\":\"{content}\"}}\n");
    let builder = packages
        .iter()
        .fold(SnapshotBuilder::new(), |builder, (name, content)| {
            builder.package(name, line(name, content))
        });
    builder.build().snapshot
}

/// Publishes the packages and returns the report of the poll.
pub(crate) async fn publish(store: &MemoryStore, packages: Packages<'_>) -> Report {
    let snapshot = snapshot(packages);
    let stored = snapshot.to_stored().unwrap();
    let key = ObjectDigest::of(&stored).with_kind(Kind::Snapshot).key();
    store.put(&key, stored.into(), Condition::Always).await.unwrap();
    let key = Key::Current(name());
    let before = store
        .read_document::<Current>(&key)
        .await
        .unwrap()
        .map(|(current, _)| current);
    let current = CurrentBuilder::new(&snapshot)
        .after(before.as_ref())
        .source("quay.io/ns/catalog:v4.20", "sha256:00")
        .build();
    store.write_document(&key, &current, Condition::Always).await.unwrap();
    report(Outcome::Published, Some((&current).into()))
}

/// The report of a later poll that found nothing new.
pub(crate) async fn unchanged(store: &MemoryStore) -> Report {
    let current = store.read_document::<Current>(&Key::Current(name())).await.unwrap();
    report(Outcome::Unchanged, current.map(|(current, _)| (&current).into()))
}

pub(crate) fn report(outcome: Outcome, published: Option<PublicationId>) -> Report {
    Report {
        outcome,
        content_hash: published.map(|published| published.content_hash),
        serial: published.map(|published| published.serial),
        ..Report::new(name())
    }
}

pub(crate) async fn cursors(store: &MemoryStore) -> BTreeMap<String, Option<u64>> {
    let found = store.read_document::<Notified>(&Key::Notified(name())).await.unwrap();
    let cursors = found.map(|(notified, _)| notified.receivers).unwrap_or_default();
    cursors
        .into_iter()
        .map(|(name, cursor)| (name, cursor.map(|cursor| cursor.serial)))
        .collect()
}

/// The answer of a receiver to its nth event.
type Answer = dyn Fn(usize) -> Result<(), SendError> + Send + Sync;

/// A receiver that records its events. Clones share the record.
#[derive(Clone)]
pub(crate) struct RecordingReceiver {
    name: &'static str,
    events: Arc<Mutex<Vec<Event>>>,
    answer: Arc<Mutex<Arc<Answer>>>,
}

impl std::fmt::Debug for RecordingReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl RecordingReceiver {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            events: Arc::default(),
            answer: Arc::new(Mutex::new(Arc::new(|_| Ok(())))),
        }
    }

    /// Sets the answer from now on. The argument counts the events from 0.
    pub(crate) fn answers(&self, answer: impl Fn(usize) -> Result<(), SendError> + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Arc::new(answer);
    }

    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock().unwrap())
    }

    /// Returns the events since the last call: serials before and after, and the packages.
    pub(crate) fn received(&self) -> Vec<(Option<u64>, u64, Option<ChangedPackages>)> {
        let summary = |event: Event| {
            let data = event.data;
            (
                data.previous.map(|previous| previous.serial),
                data.published.serial,
                data.packages,
            )
        };
        self.take().into_iter().map(summary).collect()
    }
}

#[async_trait]
impl Receiver for RecordingReceiver {
    fn name(&self) -> &str {
        self.name
    }

    async fn send(&self, event: &Event) -> Result<(), SendError> {
        let mut events = self.events.lock().unwrap();
        events.push(event.clone());
        let answer = self.answer.lock().unwrap().clone();
        answer(events.len() - 1)
    }
}

/// Returns a notifier of one receiver, and its store.
pub(crate) fn one() -> (MemoryStore, RecordingReceiver, Notifier) {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    let notifier = notifier(&store, &[&receiver]);
    (store, receiver, notifier)
}

pub(crate) fn notifier(store: &MemoryStore, receivers: &[&RecordingReceiver]) -> Notifier {
    let receivers = receivers
        .iter()
        .map(|receiver| Box::new((*receiver).clone()) as Box<dyn Receiver>);
    Notifier::new(
        Arc::new(store.clone()),
        receivers.collect(),
        NotifierSettings::default(),
    )
}

pub(crate) fn changes(added: &[&str], removed: &[&str], changed: &[&str]) -> Option<ChangedPackages> {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Some(ChangedPackages {
        added: texts(added),
        removed: texts(removed),
        changed: texts(changed),
    })
}

pub(crate) fn down() -> SendError {
    SendError::temporary("it is down")
}
