//! `notified.json`: the last publication that each receiver has acknowledged. Several processes may write it.

use std::collections::BTreeMap;

use model::{CatalogName, Key, Notified, PublicationId};
use store::{Condition, ReadError, Store, StoreExt};

/// The cursor of each receiver by its name. `None` for a receiver that was added before the first publication.
pub(crate) type Cursors = BTreeMap<String, Option<PublicationId>>;

/// Reads all cursors of a catalog.
pub(crate) async fn read(store: &dyn Store, catalog: &CatalogName) -> Result<Cursors, ReadError> {
    let found = store.read_document::<Notified>(&Key::Notified(catalog.clone())).await?;
    Ok(found.map(|(notified, _)| notified.receivers).unwrap_or_default())
}

/// Adds cursors for receivers that have none yet.
pub(crate) async fn add(store: &dyn Store, catalog: &CatalogName, new: &Cursors) -> Result<(), ReadError> {
    let edit = |cursors: &mut Cursors| {
        let before = cursors.len();
        for (name, cursor) in new {
            // A cursor that another process has added meanwhile is kept: it may have moved already.
            cursors.entry(name.clone()).or_insert(*cursor);
        }
        cursors.len() > before
    };
    change(store, catalog, edit).await
}

/// Moves the cursor of one receiver, unless another process has moved it meanwhile.
pub(crate) async fn advance(
    store: &dyn Store,
    catalog: &CatalogName,
    receiver: &str,
    from: Option<PublicationId>,
    to: PublicationId,
) -> Result<(), ReadError> {
    let edit = |cursors: &mut Cursors| {
        let cursor = cursors.entry(receiver.to_owned()).or_insert(from);
        // Another process may have delivered a newer event. Moving its cursor back would repeat that event.
        let unmoved = *cursor == from;
        if unmoved {
            *cursor = Some(to);
        }
        unmoved
    };
    change(store, catalog, edit).await
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
        let (mut notified, condition) = match store.read_document::<Notified>(&key).await? {
            Some((notified, version)) => (notified, Condition::Replace(version)),
            None => (Notified::default(), Condition::CreateOnly),
        };
        if !edit(&mut notified.receivers) {
            return Ok(());
        }
        match store.write_document(&key, &notified, condition).await {
            Err(error) if error.is_conflict() => {}
            written => return written.map(drop).map_err(Into::into),
        }
    }
}
