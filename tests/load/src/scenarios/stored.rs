use model::{CatalogImage, Encoding, Key, Kind, Sha256, ShardRef, Snapshot};

use super::{OBJECT, any, stored};
use crate::client::{CheckedRequest, Client};
use crate::expectation::{Expectation, VerifiedAnswer};
use crate::violation::{Violation, equal};

impl Client {
    /// Checks that the shards that the pointer leads to are together the catalog in every encoding.
    /// `verify`, which scripts/soak runs in the end, compares the index with them.
    pub(super) async fn everything_fits(&mut self, catalog: &str) -> Result<(), Violation> {
        let content = self.current(catalog).await?.content_hash;
        let Some(state) = self.state(catalog, content).await? else {
            return Ok(());
        };
        let mut all = Vec::new();
        for shard in state.shards() {
            let Some(found) = self.object(catalog, content, shard_of(shard)).await? else {
                return Ok(());
            };
            equal("the hash of a shard", &found.hash, &shard.lines.sha256)?;
            all.extend_from_slice(&found.plain);
        }
        equal(
            "the hash of all shards together",
            &Sha256::of(&all),
            &content,
        )?;
        for encoding in Encoding::ALL {
            if let Some(found) = self.encoding(catalog, &state, encoding).await? {
                equal("the hash of an encoding", &found.hash, &content)?;
            }
        }
        Ok(())
    }

    /// Requests one object of the current or an earlier state.
    pub(super) async fn earlier(&mut self, catalog: &str) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let mut contents: Vec<Sha256> = current
            .previous
            .iter()
            .map(|previous| previous.content_hash)
            .collect();
        contents.push(current.content_hash);
        let Some(state) = self.state(catalog, *any(&contents)).await? else {
            return Ok(());
        };
        let content = state.content_hash;
        let wanted = match rand::random_range(0..5) {
            0 => {
                return self
                    .encoding(catalog, &state, *any(&Encoding::ALL))
                    .await
                    .map(drop);
            }
            1 => stored(state.index.with_kind(Kind::Index)),
            2 => blob_of(&state)?,
            3 => facts_of(&state)?,
            _ => shard_of(any(&state.packages)),
        };
        self.object(catalog, content, wanted).await.map(drop)
    }

    /// Requests an encoding of the whole catalog, if it is stored.
    async fn encoding(
        &mut self,
        catalog: &str,
        state: &Snapshot,
        encoding: Encoding,
    ) -> Result<Option<VerifiedAnswer>, Violation> {
        let Some(digest) = state.all.get(encoding) else {
            // Only the plain encoding may be missing, and its name is the content hash.
            let path = format!("/{}", Key::Object(Kind::All(encoding), state.content_hash));
            let found = self
                .get(&CheckedRequest::new(OBJECT, path, Expectation::Body))
                .await?;
            if found.is_none() {
                self.shared.statistics.with(OBJECT, |row| row.other += 1);
            }
            return Ok(found);
        };
        let wanted = stored(digest.with_kind(Kind::All(encoding)));
        self.object(catalog, state.content_hash, wanted).await
    }
}

fn shard_of(shard: &ShardRef) -> CheckedRequest {
    stored(shard.stored.with_kind(Kind::Package))
}

/// Returns facts of one kind about the packages of a state.
fn facts_of(state: &Snapshot) -> Result<CheckedRequest, Violation> {
    let facts: Vec<_> = state.facts.values().collect();
    if facts.is_empty() {
        return Err(Violation::Missing("the facts of a snapshot".to_owned()));
    }
    Ok(stored(any(&facts).with_kind(Kind::Facts)))
}

pub(super) fn image_of(state: &Snapshot) -> Result<&CatalogImage, Violation> {
    let missing = || Violation::Missing("the image of a snapshot".to_owned());
    state.image.as_ref().ok_or_else(missing)
}

fn blob_of(state: &Snapshot) -> Result<CheckedRequest, Violation> {
    let blobs: Vec<_> = image_of(state)?.blobs().collect();
    Ok(stored(any(&blobs).with_kind(Kind::Blob)))
}
