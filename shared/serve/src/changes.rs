use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use layout::{CachePolicy, Key, Sha256, ShardRef};
use operators::{CHANGES_VERSION, Changes, Differing, Package, Reader, differing};

use crate::{
    answers::document,
    app::{App, blocking},
    cache::BodyKey,
    error::{Corruption, Error},
    fields::{Coding, Tag, since},
    published::{Published, parse_snapshot},
    respond::Representation,
    source::Source,
};

/// The most bytes of lines that are read for one answer: a week of a large catalog has a few, a whole catalog of 130 MB
/// read twice would keep a small function busy for seconds. Packages beyond are named, and told as omitted.
const DETAIL_MAX: u64 = 64 << 20;

/// Two states of a catalog.
#[derive(Debug, Clone)]
pub(crate) struct States {
    since: Sha256,
    published: Arc<Published>,
    /// The older snapshot as it is stored; none if it is the published one.
    old: Option<Bytes>,
}

impl States {
    /// What tells their comparison from any other: it depends on nothing else.
    fn identity(&self) -> Sha256 {
        let mut text = Vec::with_capacity(80);
        text.extend_from_slice(b"changes");
        text.extend_from_slice(&CHANGES_VERSION.to_be_bytes());
        text.extend_from_slice(self.since.as_bytes());
        text.extend_from_slice(self.published.current.content_hash.as_bytes());
        Sha256::of(&text)
    }
}

impl App {
    /// `GET /catalogs/{c}/changes`. Nothing is compared before the conditions of the request have been evaluated.
    pub(crate) async fn changes(self: &Arc<Self>, name: &str, query: &str) -> Result<Representation, Error> {
        let since = since(query).map_err(Error::SinceParameter)?;
        let since: Sha256 = since.unwrap_or_default().parse().map_err(|_| Error::Since)?;
        let published = self.published(name).await?;
        let old = match since == published.current.content_hash {
            true => None,
            false => Some(self.kept(&published, since).await?),
        };
        let modified = Some(published.modified.clone());
        let states = States { since, published, old };
        Ok(Representation {
            tag: Tag::new(states.identity(), "-changes"),
            modified,
            source: Source::Changes(states),
            ..document(Bytes::new(), CachePolicy::Pointer)
        })
    }

    /// The snapshot of an earlier state.
    async fn kept(&self, published: &Published, hash: Sha256) -> Result<Bytes, Error> {
        let key = Key::Snapshot(published.name.clone(), hash);
        self.cached(&key, None).await.map_err(gone(hash))
    }

    /// The document that tells what changed, kept.
    pub(crate) async fn compared(self: &Arc<Self>, states: States) -> Result<Bytes, Error> {
        let entry = BodyKey::Made(states.identity(), Coding::Identity);
        if let Some(bytes) = self.caches.bodies.get(&entry) {
            return Ok(bytes);
        }
        let make = async { Ok(Bytes::from(self.compare(&states).await?.to_bytes())) };
        Box::pin(self.caches.bodies.get_or_insert_async(&entry, make)).await
    }

    /// Reads the shards that differ, one package after the other, so that there is never more than one in memory.
    async fn compare(&self, states: &States) -> Result<Changes, Error> {
        let mut changes = Changes::new(states.since, states.published.current.content_hash);
        let Some(old) = &states.old else {
            return Ok(changes);
        };
        let key = Key::Snapshot(states.published.name.clone(), states.since);
        let old = parse_snapshot(&key, old)?;
        let mut left = DETAIL_MAX;
        for package in differing(&old, &states.published.snapshot) {
            match left.checked_sub(package.size()) {
                Some(rest) => {
                    left = rest;
                    self.compare_package(&package, states.since, &mut changes).await?;
                }
                None => changes.omit(&package),
            }
        }
        Ok(changes)
    }

    async fn compare_package(
        &self,
        package: &Differing<'_>,
        since: Sha256,
        changes: &mut Changes,
    ) -> Result<(), Error> {
        // What only the older state names may be swept while this runs: then it is kept no more.
        let old = self.package(package.old).await.map_err(gone(since))?;
        let new = self.package(package.new).await?;
        changes.add(package.name, old.as_ref(), new.as_ref());
        Ok(())
    }

    async fn package(&self, shard: Option<&ShardRef>) -> Result<Option<Package>, Error> {
        let Some(shard) = shard else {
            return Ok(None);
        };
        let mut chunks = self.shard(shard).await?;
        let mut reader = Reader::default();
        while let Some(chunk) = chunks.try_next().await? {
            reader = blocking(move || {
                reader.push(&chunk);
                reader
            })
            .await;
        }
        Ok(Some(reader.finish()))
    }
}

/// What is missing of a state that is not published any more is no failure: nobody promised to keep it for ever.
fn gone(since: Sha256) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Corrupt {
            source: Corruption::Missing,
            ..
        } => Error::UnknownSince(since),
        other => other,
    }
}
