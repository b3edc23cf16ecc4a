use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use model::{CachePolicy, Encoding, Sha256, ShardRef, Snapshot};
use olm::{ChangedShard, Changes, Package, PackageParser, changed_shards};
use reader::{BodyKey, PublishedState, ReaderError};

use crate::app::App;
use crate::call::RouteCall;
use crate::error::ApiError;
use crate::payload::{Payload, WantedChanges};
use crate::representation::Representation;
use crate::rfc9110::parameters;

/// Maximum bytes of lines that are read for one comparison. A week of a large catalog has a few
/// megabytes; a whole catalog of 130 MB read twice would keep a small function busy for seconds.
/// Packages beyond are named and marked as omitted.
const DETAIL_MAX: u64 = 64 << 20;

/// Memory of a comparison, in bytes: the decoder of a large Shard, what two Packages are parsed to,
/// and the document.
const COMPARE_BYTES: u64 = 16 << 20;

pub(super) async fn changes(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let [since] = parameters(call.query(), "since")?;
    let state = call.state().await?;
    let current = state.current();
    let since = match (since, current.previous.first()) {
        (Some(since), _) => since.parse().map_err(|_| ApiError::Since)?,
        (None, Some(before)) => before.content_hash,
        // The last publication changed nothing where there is none before.
        (None, None) => current.content_hash,
    };
    let new = current.content_hash;
    // Before conditions are evaluated: 410 is the answer to a state that is not kept, whatever the
    // client holds.
    let old = if since == new {
        None
    } else {
        Some(call.app.find_snapshot(&state, since).await?)
    };
    let head = call.app.head(&state);
    let wanted = WantedChanges {
        since,
        new,
        old,
        state,
    };
    // The size is not known yet, so a small document is compressed too.
    let encoding = call.encoding()?;
    let wanted = Arc::new(wanted);
    let payload = Payload::Changes { wanted, encoding };
    let representation = Representation::of(payload, CachePolicy::Pointer);
    Ok(representation.dated(&head).negotiated(encoding))
}

impl RouteCall<'_> {
    /// Returns the document of the changes, from memory or into it.
    pub(crate) async fn changes_document(&self, wanted: &WantedChanges) -> Result<Bytes, ApiError> {
        let key = BodyKey::Made(wanted.identity(), Encoding::Identity);
        let document = self.app.catalogs.body(&key, || async {
            let _memory = self.memory(COMPARE_BYTES).await?;
            let mut changes = Changes::new(wanted.since, wanted.new);
            if let Some(old) = &wanted.old {
                changes = self.app.compare(changes, old, &wanted.state).await?;
            }
            Ok::<_, ApiError>(Bytes::from(changes.to_bytes()))
        });
        document.await
    }
}

impl App {
    /// Returns a Snapshot of an earlier content that is still stored.
    async fn find_snapshot(
        &self,
        state: &PublishedState,
        since: Sha256,
    ) -> Result<Arc<Snapshot>, ApiError> {
        for object in state.current().snapshots_of(since) {
            match self.catalogs.snapshot(&object).await {
                Ok(snapshot) => return Ok(snapshot),
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApiError::UnknownSince(since))
    }

    /// Reads the Shards that differ, one Package after the other, so that at most one of each state
    /// is in memory.
    async fn compare(
        &self,
        mut changes: Changes,
        old: &Snapshot,
        state: &PublishedState,
    ) -> Result<Changes, ApiError> {
        let new = state.snapshot().await?;
        let mut left = DETAIL_MAX;
        for package in changed_shards(old, &new) {
            match left.checked_sub(package.size()) {
                Some(rest) => {
                    left = rest;
                    changes = self.compare_package(&package, changes).await?;
                }
                None => changes.omit(&package),
            }
        }
        Ok(changes)
    }

    async fn compare_package(
        &self,
        package: &ChangedShard<'_>,
        mut changes: Changes,
    ) -> Result<Changes, ApiError> {
        // Retention may delete an object of the earlier state at any time, also while this runs:
        // that is no failure.
        let old = self
            .read_package(package.old)
            .await
            .map_err(|error| match error {
                error if error.is_missing() => ApiError::UnknownSince(changes.from),
                error => error.into(),
            })?;
        let new = self.read_package(package.new).await?;
        let name = package.name.to_owned();
        let size = package.size();
        let added = self.catalogs.run(size, move || {
            changes.add(&name, old.as_ref(), new.as_ref());
            changes
        });
        Ok(added.await)
    }

    /// Reads a Shard as a Package.
    pub(super) async fn read_package(
        &self,
        shard: Option<&ShardRef>,
    ) -> Result<Option<Package>, ReaderError> {
        let Some(shard) = shard else {
            return Ok(None);
        };
        let mut chunks = self.catalogs.cached_shard(shard).await?;
        let mut parser = PackageParser::default();
        while let Some(chunk) = chunks.try_next().await? {
            let size = chunk.len() as u64;
            let pushed = self.catalogs.run(size, move || {
                parser.push(&chunk);
                parser
            });
            parser = pushed.await;
        }
        Ok(Some(parser.finish()))
    }
}
