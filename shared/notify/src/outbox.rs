//! What is still to be told: `notified.json` against `current.json`.

use std::collections::{HashMap, hash_map::Entry};

use layout::{CatalogName, Current, Key, Mark, Snapshot};
use poll::Changes;
use store::{ReadError, Store, StoreExt};
use telemetry::chain;

use crate::{
    Event,
    marks::{self, Marks},
};

/// One catalog as it is published, and where its receivers stand.
pub(crate) struct Outbox<'a> {
    store: &'a dyn Store,
    catalog: &'a CatalogName,
    marks: Marks,
    current: Option<Current>,
}

/// What receivers without a mark count as told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adopt {
    /// Everything.
    Now,
    /// Everything that was published before this serial.
    Before(u64),
}

impl<'a> Outbox<'a> {
    /// The marks are read first: a publication that comes in between is then still to be told, and never one that is
    /// older than the marks.
    pub(crate) async fn open(store: &'a dyn Store, catalog: &'a CatalogName) -> Result<Self, ReadError> {
        let marks = marks::read(store, catalog).await?;
        let current = store.read_document(&Key::Current(catalog.clone())).await?;
        Ok(Self {
            store,
            catalog,
            marks,
            current: current.map(|(current, _)| current),
        })
    }

    /// What is published.
    pub(crate) fn published(&self) -> Option<Mark> {
        self.current.as_ref().map(Mark::from)
    }

    /// Gives marks to those of `names` that have none. They are written before anything is sent, so that a receiver
    /// that is down from the start misses nothing.
    pub(crate) async fn adopt(&mut self, names: &[&str], adopt: Adopt) -> Result<(), ReadError> {
        let mark = self.adopted(adopt);
        let unknown = names.iter().filter(|name| !self.marks.contains_key(**name));
        let new: Marks = unknown.map(|name| ((*name).to_owned(), mark)).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.marks.extend(new.clone());
        marks::adopt(self.store, self.catalog, &new).await
    }

    fn adopted(&self, adopt: Adopt) -> Option<Mark> {
        let current = self.current.as_ref()?;
        match adopt {
            Adopt::Before(serial) if serial <= current.serial => {
                let earlier = current.previous.iter().find(|previous| previous.serial < serial);
                earlier.map(Mark::from)
            }
            Adopt::Now | Adopt::Before(_) => Some(current.into()),
        }
    }

    /// What a receiver was told last.
    pub(crate) fn mark(&self, receiver: &str) -> Option<Mark> {
        self.marks.get(receiver).copied().flatten()
    }

    /// The events that lead from these marks to what is published.
    pub(crate) async fn events(
        &self,
        source: &str,
        from: &[Option<Mark>],
    ) -> Result<HashMap<Option<Mark>, Event>, ReadError> {
        let mut events = HashMap::new();
        let Some(current) = &self.current else {
            return Ok(events);
        };
        for &mark in from {
            if let Entry::Vacant(missing) = events.entry(mark) {
                let packages = self.changes(mark, current).await?;
                missing.insert(Event::new(source, self.catalog, mark, current, packages));
            }
        }
        Ok(events)
    }

    /// The difference of two Snapshots; none if one of them is gone.
    async fn changes(&self, from: Option<Mark>, current: &Current) -> Result<Option<Changes>, ReadError> {
        let before = match from {
            None => None,
            Some(mark) => match self.snapshot(mark).await? {
                None => return Ok(None),
                before => before,
            },
        };
        let after = self.snapshot(current.into()).await?;
        Ok(after.map(|after| Changes::between(before.as_ref(), &after)))
    }

    async fn snapshot(&self, mark: Mark) -> Result<Option<Snapshot>, ReadError> {
        let key = Key::Snapshot(self.catalog.clone(), mark.content_hash);
        match self.store.read_document(&key).await {
            Ok(found) => Ok(found.map(|(snapshot, _)| snapshot)),
            Err(error @ ReadError::Store(_)) => Err(error),
            Err(error) => {
                tracing::warn!(%key, error = chain(&error), "a snapshot is unreadable");
                Ok(None)
            }
        }
    }
}
