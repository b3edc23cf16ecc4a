//! A store with one catalog, receivers that record their events, and reports of polls.

use std::fmt::Write;
use std::future::pending;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use model::{
    CatalogName, Current, Document as _, Key, Kind, Notified, ObjectDigest, Outcome, PublicationId,
    Snapshot, StoredDocument,
};
use publish::Report;
use store::StoreExt;
use storekit::{MemoryStore, conformance::put};
use testkit::{CurrentBuilder, SnapshotBuilder};
use upkeep::{Event, Notifier, NotifierSettings, Receiver, SendError};

pub(crate) fn name() -> CatalogName {
    "v4.20".parse().unwrap()
}

/// Returns the snapshot of packages that have one letter as their name, each with its version, such
/// as `a1 b2`.
pub(crate) fn snapshot(packages: &str) -> Snapshot {
    let add = |builder: SnapshotBuilder, package: &str| {
        builder.package(&package[..1], format!("\"{package}\"\n"))
    };
    let packages = packages.split_whitespace();
    packages.fold(SnapshotBuilder::new(), add).build().snapshot
}

/// Publishes the packages and returns the report of the poll.
pub(crate) async fn publish(store: &MemoryStore, packages: &str) -> Report {
    let snapshot = snapshot(packages);
    let stored = snapshot.to_stored().unwrap();
    let key = ObjectDigest::of(&stored).with_kind(Kind::Snapshot).key();
    put(store, &key, stored).await;
    let before = current(store).await;
    let builder = CurrentBuilder::new(&snapshot).after(before.as_ref());
    let current = builder
        .source("quay.io/ns/catalog:v4.20", "sha256:00")
        .build();
    put(store, &Key::Current(name()), current.to_bytes()).await;
    report(Outcome::Published, Some((&current).into()))
}

async fn current(store: &MemoryStore) -> Option<Current> {
    let found = store.read_document(&Key::Current(name())).await.unwrap();
    found.map(|(current, _)| current)
}

/// The report of a later poll that found nothing new.
pub(crate) async fn unchanged(store: &MemoryStore) -> Report {
    let current = current(store).await;
    report(Outcome::Unchanged, current.as_ref().map(Into::into))
}

pub(crate) fn report(outcome: Outcome, published: Option<PublicationId>) -> Report {
    Report {
        outcome,
        content_hash: published.map(|published| published.content_hash),
        serial: published.map(|published| published.serial),
        ..Report::new(name())
    }
}

/// Returns each receiver with the serial that it has acknowledged, 0 for none.
pub(crate) async fn cursors(store: &MemoryStore) -> Vec<String> {
    let found = store
        .read_document::<Notified>(&Key::Notified(name()))
        .await
        .unwrap();
    let cursors = found
        .map(|(notified, _)| notified.receivers)
        .unwrap_or_default();
    let lines = cursors
        .iter()
        .map(|(name, cursor)| format!("{name}: {}", serial(*cursor)));
    lines.collect()
}

fn serial(published: Option<PublicationId>) -> u64 {
    published.map_or(0, |published| published.serial)
}

/// The answer of a receiver to its nth event.
pub(crate) type Answer = fn(usize) -> Result<(), SendError>;

/// A receiver that records its events. Clones share the record.
#[derive(Clone, Debug)]
pub(crate) struct RecordingReceiver {
    name: &'static str,
    events: Arc<Mutex<Vec<Event>>>,
    /// `None` never answers.
    answer: Arc<Mutex<Option<Answer>>>,
}

impl RecordingReceiver {
    /// Creates a receiver that acknowledges all events.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            events: Arc::default(),
            answer: Arc::new(Mutex::new(Some(|_| Ok(())))),
        }
    }

    /// Sets the answer from now on. The argument counts the events from 0.
    pub(crate) fn answers(&self, answer: Answer) {
        *self.answer.lock().unwrap() = Some(answer);
    }

    /// Answers no event from now on.
    pub(crate) fn hangs(&self) {
        *self.answer.lock().unwrap() = None;
    }

    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock().unwrap())
    }

    /// Returns the events since the last call: serials before and after, and the packages, such as
    /// `1 to 2: +c -a ~b`.
    pub(crate) fn received(&self) -> Vec<String> {
        self.take().iter().map(summary).collect()
    }
}

fn summary(event: &Event) -> String {
    let data = &event.data;
    let mut text = format!("{} to {}:", serial(data.previous), data.published.serial);
    let Some(packages) = &data.packages else {
        return text + " unknown";
    };
    for (sign, names) in [
        ('+', &packages.added),
        ('-', &packages.removed),
        ('~', &packages.changed),
    ] {
        for name in names {
            write!(text, " {sign}{name}").unwrap();
        }
    }
    text
}

#[async_trait]
impl Receiver for RecordingReceiver {
    fn name(&self) -> &str {
        self.name
    }

    async fn send(&self, event: &Event) -> Result<(), SendError> {
        let count = self.events.lock().unwrap().len();
        self.events.lock().unwrap().push(event.clone());
        let answer = *self.answer.lock().unwrap();
        match answer {
            Some(answer) => answer(count),
            None => pending().await,
        }
    }
}

/// Returns a notifier of one receiver, and its store.
pub(crate) fn one() -> (MemoryStore, RecordingReceiver, Notifier) {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    let notifier = notifier(&store, &[&receiver]);
    (store, receiver, notifier)
}

/// Returns the notifier of another process on the same store.
pub(crate) fn notifier(store: &MemoryStore, receivers: &[&RecordingReceiver]) -> Notifier {
    let receivers = receivers
        .iter()
        .map(|&receiver| Box::new(receiver.clone()) as _);
    let settings = NotifierSettings::default();
    Notifier::new(Arc::new(store.clone()), receivers.collect(), settings)
}

pub(crate) fn down() -> SendError {
    SendError::temporary("it is down")
}
