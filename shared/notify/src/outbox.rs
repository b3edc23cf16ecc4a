//! The events that are still to be sent: the difference between `notified.json` and `current.json`.

use std::collections::{HashMap, hash_map::Entry};

use model::text::chain;
use model::{CatalogName, Current, Key, ObjectRef, PublicationId, Snapshot};
use publish::ChangedPackages;
use store::{ObjectError, ReadError, Store, StoreExt, read_stored};

use crate::{
    Event,
    cursors::{self, Cursors},
};

/// The published state of one catalog and the cursors of its receivers.
pub(crate) struct Outbox<'a> {
    store: &'a dyn Store,
    catalog: &'a CatalogName,
    cursors: Cursors,
    current: Option<Current>,
}

/// The first cursor of a receiver that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartAt {
    /// The publication that `current.json` names now.
    Current,
    /// The last publication before this serial.
    Before(u64),
}

impl<'a> Outbox<'a> {
    pub(crate) async fn open(store: &'a dyn Store, catalog: &'a CatalogName) -> Result<Self, ReadError> {
        // The cursors first: a publication in between is then still to be sent. The other order could give a publication
        // that is older than the cursors.
        let cursors = cursors::read(store, catalog).await?;
        let current = store.read_document(&Key::Current(catalog.clone())).await?;
        Ok(Self {
            store,
            catalog,
            cursors,
            current: current.map(|(current, _)| current),
        })
    }

    /// Returns the publication that `current.json` names; `None` if there is no catalog.
    pub(crate) fn published(&self) -> Option<PublicationId> {
        self.current.as_ref().map(PublicationId::from)
    }

    /// Stores cursors for those of `names` that have none. The caller does this before it sends anything, so that a
    /// receiver that is down from the start misses nothing.
    pub(crate) async fn add_receivers(&mut self, names: &[&str], start: StartAt) -> Result<(), ReadError> {
        let cursor = self.first_cursor(start);
        let unknown = names.iter().filter(|name| !self.cursors.contains_key(**name));
        let new: Cursors = unknown.map(|name| ((*name).to_owned(), cursor)).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.cursors.extend(new.clone());
        cursors::add(self.store, self.catalog, &new).await
    }

    fn first_cursor(&self, start: StartAt) -> Option<PublicationId> {
        let current = self.current.as_ref()?;
        match start {
            StartAt::Before(serial) if serial <= current.serial => {
                let earlier = current.previous.iter().find(|previous| previous.serial < serial);
                earlier.map(PublicationId::from)
            }
            StartAt::Current | StartAt::Before(_) => Some(current.into()),
        }
    }

    /// Returns the last publication that a receiver has acknowledged.
    pub(crate) fn cursor(&self, receiver: &str) -> Option<PublicationId> {
        self.cursors.get(receiver).copied().flatten()
    }

    /// Returns the events that lead from these cursors to the present publication.
    pub(crate) async fn events(
        &self,
        source: &str,
        from: &[Option<PublicationId>],
    ) -> Result<HashMap<Option<PublicationId>, Event>, ReadError> {
        let mut events = HashMap::new();
        let Some(current) = &self.current else {
            return Ok(events);
        };
        for &cursor in from {
            if let Entry::Vacant(missing) = events.entry(cursor) {
                let packages = self.changes(cursor, current).await?;
                missing.insert(Event::new(source, self.catalog, cursor, current, packages));
            }
        }
        Ok(events)
    }

    /// Returns the difference of two snapshots, or `None` if one of them was deleted.
    async fn changes(
        &self,
        from: Option<PublicationId>,
        current: &Current,
    ) -> Result<Option<ChangedPackages>, ReadError> {
        let before = match from {
            None => None,
            Some(cursor) => match self.snapshot(cursor).await? {
                None => return Ok(None),
                before => before,
            },
        };
        let after = self.snapshot(current.into()).await?;
        Ok(after.map(|after| ChangedPackages::between(before.as_ref(), &after)))
    }

    async fn snapshot(&self, cursor: PublicationId) -> Result<Option<Snapshot>, ReadError> {
        let Some(object) = self.current.as_ref().and_then(|current| stored_as(current, cursor)) else {
            return Ok(None);
        };
        match read_stored(self.store, &object.digest).await {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(ObjectError::Read(error @ ReadError::Store(_))) => Err(error),
            Err(error) => {
                let key = object.key();
                tracing::warn!(%key, error = chain(&error), "cannot read a snapshot for an event");
                Ok(None)
            }
        }
    }
}

/// Returns the Snapshot of a publication, if the history still has it.
fn stored_as(current: &Current, publication: PublicationId) -> Option<ObjectRef> {
    if PublicationId::from(current) == publication {
        return Some(current.snapshot);
    }
    let mut earlier = current.previous.iter();
    let found = earlier.find(|previous| PublicationId::from(*previous) == publication);
    found.map(|previous| previous.snapshot)
}
