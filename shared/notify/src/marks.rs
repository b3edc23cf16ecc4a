//! `notified.json`, whoever else writes it.

use std::collections::BTreeMap;

use layout::{CatalogName, Key, Mark, Notified};
use store::{Condition, ReadError, Store, StoreExt};

/// Where each receiver stands, by its name; `None` for one that came before anything was published.
pub(crate) type Marks = BTreeMap<String, Option<Mark>>;

pub(crate) async fn read(store: &dyn Store, catalog: &CatalogName) -> Result<Marks, ReadError> {
    let found = store.read_document::<Notified>(&Key::Notified(catalog.clone())).await?;
    Ok(found.map(|(notified, _)| notified.receivers).unwrap_or_default())
}

/// Sets marks where there are none yet: who was faster is right.
pub(crate) async fn adopt(store: &dyn Store, catalog: &CatalogName, new: &Marks) -> Result<(), ReadError> {
    let edit = |marks: &mut Marks| {
        let before = marks.len();
        for (name, mark) in new {
            marks.entry(name.clone()).or_insert(*mark);
        }
        marks.len() > before
    };
    change(store, catalog, edit).await
}

/// Moves the mark of one receiver, unless somebody else has moved it in the meantime.
pub(crate) async fn advance(
    store: &dyn Store,
    catalog: &CatalogName,
    receiver: &str,
    from: Option<Mark>,
    to: Mark,
) -> Result<(), ReadError> {
    let edit = |marks: &mut Marks| {
        let mark = marks.entry(receiver.to_owned()).or_insert(from);
        let ours = *mark == from;
        if ours {
            *mark = Some(to);
        }
        ours
    };
    change(store, catalog, edit).await
}

/// Every lost race means that another mark got in, so this ends.
async fn change(
    store: &dyn Store,
    catalog: &CatalogName,
    edit: impl Fn(&mut Marks) -> bool + Send + Sync,
) -> Result<(), ReadError> {
    let key = Key::Notified(catalog.clone());
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
