use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use model::{CachePolicy, ObjectRef, Sha256, ShardRef, Snapshot};
use olm::{CHANGES_VERSION, ChangedShard, Changes, Package, PackageParser, changed_shards};

use super::{BodyType, DOCUMENT, Route, RouteCall};
use crate::{
    app::{App, blocking},
    cache::BodyKey,
    error::{ApiError, Corruption},
    payload::Payload,
    pointer::{ServedCatalog, parse_snapshot},
    respond::Representation,
    rfc9110::{Coding, Tag, since},
};

/// Maximum bytes of lines that are read for one comparison. A week of a large catalog has a few megabytes; a whole catalog
/// of 130 MB read twice would keep a small function busy for seconds. Packages beyond are named and marked as omitted.
const DETAIL_MAX: u64 = 64 << 20;

pub(super) const CHANGES: Route = Route {
    path: "/catalogs/{catalog}/changes",
    handler: |call| Box::pin(changes(call)),
    id: "getChanges",
    summary: "The difference between an earlier state and the published one: packages, channels, heads, bundles",
    body: BodyType::Json("Changes"),
    query: &[(
        "since",
        "Required: the content hash of the state that the client knows, as content-hash answered it",
    )],
    dated: true,
    errors: &[400, 404, 410, 503],
    ..DOCUMENT
};

/// Two published states of a catalog that are compared when the document is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    since: Sha256,
    served: Arc<ServedCatalog>,
    /// The Snapshot of the older state; `None` if it is the published one.
    old: Option<ObjectRef>,
}

impl Comparison {
    /// Returns a hash that identifies the document, which depends on nothing else.
    fn identity(&self) -> Sha256 {
        let mut text = Vec::with_capacity(80);
        text.extend_from_slice(b"changes");
        text.extend_from_slice(&CHANGES_VERSION.to_be_bytes());
        text.extend_from_slice(self.since.as_bytes());
        text.extend_from_slice(self.served.current.content_hash.as_bytes());
        Sha256::of(&text)
    }
}

/// Describes the comparison. Nothing is compared before the conditions of the request are evaluated.
async fn changes(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let name = call.catalog()?;
    let since = since(call.query)?;
    let since: Sha256 = since.unwrap_or_default().parse().map_err(|_| ApiError::Since)?;
    let served = call.app.served(&name).await?;
    let old = match since == served.current.content_hash {
        true => None,
        false => Some(call.app.find_snapshot(&served, since).await?),
    };
    let modified = Some(served.modified.clone());
    let comparison = Comparison { since, served, old };
    Ok(Representation {
        tag: Tag::with_suffix(comparison.identity(), "-changes"),
        modified,
        payload: Payload::Compared(comparison),
        ..Representation::empty_document(CachePolicy::Pointer)
    })
}

impl App {
    /// Returns a Snapshot of an earlier content that is still stored, and reads it into the cache.
    async fn find_snapshot(&self, served: &ServedCatalog, since: Sha256) -> Result<ObjectRef, ApiError> {
        for snapshot in served.current.snapshots_of(since) {
            match self.cached_object(&snapshot).await.map_err(gone(since)) {
                Ok(_) => return Ok(snapshot),
                Err(ApiError::UnknownSince(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(ApiError::UnknownSince(since))
    }

    /// Returns the document, from memory or into it.
    pub(crate) async fn compared(self: &Arc<Self>, comparison: Comparison) -> Result<Bytes, ApiError> {
        let entry = BodyKey::Made(comparison.identity(), Coding::Identity);
        if let Some(bytes) = self.caches.bodies.get(&entry) {
            return Ok(bytes);
        }
        let make = async { Ok(Bytes::from(self.compare(&comparison).await?.to_bytes())) };
        Box::pin(self.caches.bodies.get_or_insert_async(&entry, make)).await
    }

    /// Reads the Shards that differ, one Package after the other, so that at most one of each state is in memory.
    async fn compare(&self, comparison: &Comparison) -> Result<Changes, ApiError> {
        let mut changes = Changes::new(comparison.since, comparison.served.current.content_hash);
        let Some(object) = comparison.old else {
            return Ok(changes);
        };
        let old: Snapshot = parse_snapshot(&object.key(), &self.cached_object(&object).await?)?;
        let new = self.snapshot(&comparison.served).await?;
        let mut left = DETAIL_MAX;
        for package in changed_shards(&old, &new) {
            match left.checked_sub(package.size()) {
                Some(rest) => {
                    left = rest;
                    self.compare_package(&package, comparison.since, &mut changes).await?;
                }
                None => changes.omit(&package),
            }
        }
        Ok(changes)
    }

    async fn compare_package(
        &self,
        package: &ChangedShard<'_>,
        since: Sha256,
        changes: &mut Changes,
    ) -> Result<(), ApiError> {
        let old = self.read_package(package.old).await.map_err(gone(since))?;
        let new = self.read_package(package.new).await?;
        changes.add(package.name, old.as_ref(), new.as_ref());
        Ok(())
    }

    async fn read_package(&self, shard: Option<&ShardRef>) -> Result<Option<Package>, ApiError> {
        let Some(shard) = shard else {
            return Ok(None);
        };
        let mut chunks = self.shard(shard).await?;
        let mut reader = PackageParser::default();
        while let Some(chunk) = chunks.try_next().await? {
            reader = blocking(chunk.len() as u64, move || {
                reader.push(&chunk);
                reader
            })
            .await;
        }
        Ok(Some(reader.finish()))
    }
}

/// Turns "an object of an earlier state is missing" into "that state is not kept": retention may delete it at any time,
/// also while this runs, so it is no failure.
fn gone(since: Sha256) -> impl Fn(ApiError) -> ApiError {
    move |error| match error {
        ApiError::Corrupt {
            source: Corruption::Missing,
            ..
        } => ApiError::UnknownSince(since),
        other => other,
    }
}
