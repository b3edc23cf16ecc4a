use std::{
    collections::{BTreeSet, VecDeque},
    time::SystemTime,
};

use futures_util::TryStreamExt;
use layout::{CatalogName, Current, Intent, Key, Sha256};
use store::{Listed, ReadError, Store, StoreExt};
use tokio_util::sync::CancellationToken;

use crate::{
    GcError, GcSettings,
    gc::{Hold, SIDE_BY_SIDE},
    names::{is_listed, try_remove_name},
};

/// Removes everything that belongs to one catalog, its name in `catalogs.json` too, and returns how many objects that
/// were.
///
/// `current.json` goes first: from then on readers see no catalog, whatever happens to the rest; who has begun to read
/// may find that something is gone. Shards and images stay, since other catalogs may name them.
///
/// Somebody may publish the catalog again meanwhile, of what lies there. So all else goes as a sweep removes it:
/// publications wait for its end and look at everything again, and what they have announced, or published, stays. Then
/// the name stays too. A catalog that is published again after it was removed is a new one: its serials start at 1, and
/// copies of the one before have to be removed as well, or allowed to go back.
///
/// # Errors
/// [`GcError`]; calling it again goes on where it stopped.
pub async fn remove(store: &dyn Store, catalog: &CatalogName) -> Result<usize, GcError> {
    store.delete(&Key::Current(catalog.clone())).await?;
    let listed: Vec<Listed> = list(store, catalog).await?;
    let mut left: VecDeque<Key> = listed.into_iter().map(|listed| listed.key).collect();
    let mut removed = 0;
    let mut done = left.is_empty() && !is_listed(store, catalog).await?;
    while !done {
        let never = CancellationToken::new();
        let Some(hold) = Hold::take(store, &never).await? else {
            break;
        };
        // Not released when it fails.
        let claims = Claims::read(store, catalog).await?;
        removed += stretch(store, &hold, &mut left, &claims).await?;
        done = left.is_empty() && (claims.is_claimed() || try_remove_name(store, catalog, || !hold.is_over()).await?);
        hold.release(store).await?;
    }
    Ok(removed)
}

async fn list(store: &dyn Store, catalog: &CatalogName) -> Result<Vec<Listed>, GcError> {
    Ok(store.list(&format!("catalogs/{catalog}/")).try_collect().await?)
}

/// What others publish of the catalog although it is being removed.
struct Claims {
    published: bool,
    /// What is published again, or about to be.
    contents: BTreeSet<Sha256>,
}

impl Claims {
    /// The order matters: a publication withdraws its Intent after its commit, so whoever sees no Intent sees its
    /// `current.json`.
    async fn read(store: &dyn Store, catalog: &CatalogName) -> Result<Self, GcError> {
        // By the clock of the store: the hold was just written.
        let now = store.head(&Key::Sweep).await?.modified;
        let listed = list(store, catalog).await?.into_iter();
        let mut contents = BTreeSet::new();
        for Listed { key, modified, .. } in listed {
            if let Key::Intent(_, content) = key
                && is_alive(modified, now)
                && is_announced(store, &key).await?
            {
                contents.insert(content);
            }
        }
        let current = store.read_document::<Current>(&Key::Current(catalog.clone())).await?;
        let published = current.is_some();
        if let Some((current, _)) = current {
            contents.insert(current.content_hash);
            contents.extend(current.previous.iter().map(|previous| previous.content_hash));
        }
        Ok(Self { published, contents })
    }

    /// Whether the catalog is not only gone.
    fn is_claimed(&self) -> bool {
        self.published || !self.contents.is_empty()
    }

    fn spare(&self, key: &Key) -> bool {
        match key {
            Key::Current(_) => true,
            Key::Intent(_, content) | Key::Snapshot(_, content) | Key::Index(_, content) | Key::All(_, content, _) => {
                self.contents.contains(content)
            }
            _ => self.published,
        }
    }
}

/// Whether somebody may be about to publish what an Intent is for. Readers of a removed catalog are promised nothing.
async fn is_announced(store: &dyn Store, intent: &Key) -> Result<bool, ReadError> {
    match store.read_document::<Intent>(intent).await {
        Ok(found) => Ok(found.is_some_and(|(intent, _)| !intent.for_readers)),
        Err(ReadError::Document { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Nobody waits for longer between an Intent and its commit.
fn is_alive(intent: SystemTime, now: SystemTime) -> bool {
    now.duration_since(intent).unwrap_or_default() <= GcSettings::GRACE_MIN
}

/// What can be removed while the hold lasts.
async fn stretch(store: &dyn Store, hold: &Hold, left: &mut VecDeque<Key>, claims: &Claims) -> Result<usize, GcError> {
    let mut removed = 0;
    while !left.is_empty() && !hold.is_over() {
        let next: Vec<Key> = left.drain(..left.len().min(SIDE_BY_SIDE)).collect();
        let doomed: Vec<Key> = next.into_iter().filter(|key| !claims.spare(key)).collect();
        hold.delete(store, doomed.iter()).await?;
        removed += doomed.len();
    }
    Ok(removed)
}
