//! The events that are still to be sent: the difference between `current.json` and `notified.json`,
//! which has the last publication that each receiver has acknowledged. Several processes may write
//! it.

use std::collections::BTreeMap;

use model::text::Chain;
use model::{CatalogName, ChangedPackages, Current, Key, Notified, PublicationId, Snapshot};
use store::{ReadError, Store, StoreExt, find_stored};

use crate::EventData;

/// Serial that no publication has: before it comes the present one.
pub(crate) const AFTER_ALL: u64 = u64::MAX;

/// The published state of one catalog and the cursors of its receivers.
pub(crate) struct Outbox<'a> {
    store: &'a dyn Store,
    catalog: &'a CatalogName,
    pub(crate) cursors: Cursors,
    /// Publication that `current.json` names; `None` if there is no catalog.
    pub(crate) current: Option<Current>,
}

impl<'a> Outbox<'a> {
    pub(crate) async fn open(
        store: &'a dyn Store,
        catalog: &'a CatalogName,
    ) -> Result<Self, ReadError> {
        // The cursors first: a publication in between is then still to be sent. The other order
        // could give a publication that is older than the cursors.
        let key = Key::Notified(catalog.clone());
        let cursors = match store.read_document::<Notified>(&key).await? {
            Some((notified, _)) => notified.receivers,
            None => Cursors::new(),
        };
        let key = Key::Current(catalog.clone());
        let current = store.read_document(&key).await?;
        Ok(Self {
            store,
            catalog,
            cursors,
            current: current.map(|(current, _)| current),
        })
    }

    /// Stores cursors for those of `names` that have none: the last publication before the serial
    /// `before`. The caller does this before it sends anything, so that a receiver that is down
    /// from the start misses nothing.
    pub(crate) async fn add_receivers(
        &mut self,
        names: &[&str],
        before: u64,
    ) -> Result<(), ReadError> {
        let mut known = self.current.iter().flat_map(Current::publications);
        let last = known.find(|known| known.serial < before);
        let cursor = last.map(|last| PublicationId::from(&last));
        let add = |cursors: &mut Cursors| {
            let before = cursors.len();
            for name in names {
                // A cursor that another process has added meanwhile is kept: it may have moved
                // already.
                cursors.entry((*name).to_owned()).or_insert(cursor);
            }
            cursors.len() > before
        };
        if !add(&mut self.cursors) {
            return Ok(());
        }
        change(self.store, self.catalog, add).await
    }

    /// Returns the difference between a cursor and the present publication, or `None` if one of
    /// their snapshots was deleted.
    pub(crate) async fn changes(
        &self,
        from: Option<PublicationId>,
        current: &Current,
    ) -> Result<Option<ChangedPackages>, ReadError> {
        let mut before = None;
        if let Some(cursor) = from {
            before = self.snapshot(cursor).await?;
            if before.is_none() {
                return Ok(None);
            }
        }
        let after = self.snapshot(current.into()).await?;
        Ok(after.map(|after| ChangedPackages::between(before.as_ref(), &after)))
    }

    /// Returns the snapshot of a publication, if the history and the store still have it.
    async fn snapshot(&self, cursor: PublicationId) -> Result<Option<Snapshot>, ReadError> {
        let mut known = self.current.iter().flat_map(Current::publications);
        let Some(found) = known.find(|known| PublicationId::from(known) == cursor) else {
            return Ok(None);
        };
        let object = found.snapshot;
        match find_stored(self.store, &object.digest).await {
            Ok(found) => Ok(found),
            Err(error @ ReadError::Store(_)) => Err(error),
            Err(error) => {
                let key = object.key();
                tracing::warn!(%key, error = %Chain(&error), "cannot read a snapshot for an event");
                Ok(None)
            }
        }
    }
}

/// The cursor of each receiver by its name. `None` for a receiver that was added before the first
/// publication.
type Cursors = BTreeMap<String, Option<PublicationId>>;

/// Moves the cursor of one receiver past an event, unless another process has moved it meanwhile.
pub(crate) async fn advance(
    store: &dyn Store,
    receiver: &str,
    event: &EventData,
) -> Result<(), ReadError> {
    let changing = change(store, &event.catalog, |cursors| {
        let cursor = cursors.entry(receiver.to_owned()).or_insert(event.previous);
        // Another process may have delivered a newer event. Moving its cursor back would repeat
        // that event.
        if *cursor != event.previous {
            return false;
        }
        *cursor = Some(event.published);
        true
    });
    changing.await
}

/// Changes the document by compare-and-swap. `edit` returns false if there is nothing to change.
async fn change(
    store: &dyn Store,
    catalog: &CatalogName,
    edit: impl Fn(&mut Cursors) -> bool + Send + Sync,
) -> Result<(), ReadError> {
    let key = Key::Notified(catalog.clone());
    // Each lost race means that another cursor was written, so the loop ends.
    loop {
        let (notified, version) = store.read_document::<Notified>(&key).await?.unzip();
        let mut notified = notified.unwrap_or_default();
        if !edit(&mut notified.receivers) {
            return Ok(());
        }
        let written = store.swap_document(&key, &notified, version).await?;
        if written.is_some() {
            return Ok(());
        }
    }
}
