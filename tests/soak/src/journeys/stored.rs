use layout::Document as _;
use layout::{CatalogName, Form, Index, Key, Sha256, ShardRef, Snapshot};

use super::{ALL_ZSTD, any, path};
use crate::{
    promise::{Checked, Promise},
    tally::Route,
    visitor::{Visitor, Wanted},
    wrong::{Wrong, equal},
};

const INDEX: Route = "/catalogs/{catalog}/{contentHash}/index.json.zst";
const ALL_GZIP: Route = "/catalogs/{catalog}/{contentHash}/all.json.gz";
const ALL_IDENTITY: Route = "/catalogs/{catalog}/{contentHash}/all.json";
const SHARD: Route = "/packages/sha256/{hash}.json.zst";
const BLOB: Route = "/blobs/sha256/{blob}";

impl Visitor {
    /// From the pointer to everything that it names: shards that together are the catalog, in every form, and an index
    /// that fits.
    pub(super) async fn everything_fits(&mut self, catalog: &str) -> Result<(), Wrong> {
        let content = self.current(catalog).await?.content_hash;
        let Some(state) = self.state(catalog, content).await? else {
            return Ok(());
        };
        let mut all = Vec::new();
        let mut shards = Vec::new();
        for shard in state.shards() {
            let Some(found) = self.object(catalog, content, shard_of(shard)).await? else {
                return Ok(());
            };
            equal("the hash of a shard", &found.hash, &shard.sha256)?;
            all.extend_from_slice(&found.plain);
            shards.push(found.plain);
        }
        equal("the hash of all shards together", &Sha256::of(&all), &content)?;
        for form in Form::ALL {
            if let Some(found) = self.form(catalog, &state, form).await? {
                equal("the hash of a form", &found.hash, &content)?;
            }
        }
        let wanted = index_of(catalog, &state)?;
        match self.object(catalog, content, wanted).await? {
            Some(found) => fits(&Index::from_bytes(&found.plain)?, &state, &shards),
            None => Ok(()),
        }
    }

    /// One object of a state that may have been replaced long ago.
    pub(super) async fn earlier(&mut self, catalog: &str) -> Result<(), Wrong> {
        let current = self.current(catalog).await?;
        let mut contents: Vec<Sha256> = current.previous.iter().map(|previous| previous.content_hash).collect();
        contents.push(current.content_hash);
        let Some(state) = self.state(catalog, *any(&contents)).await? else {
            return Ok(());
        };
        let content = state.content_hash;
        let wanted = match rand::random_range(0..4) {
            0 => return self.form(catalog, &state, *any(&Form::ALL)).await.map(drop),
            1 => index_of(catalog, &state)?,
            2 => blob_of(&state)?,
            _ => shard_of(any(&state.packages)),
        };
        self.object(catalog, content, wanted).await.map(drop)
    }

    /// A form that the store keeps; the others are not there.
    async fn form(&mut self, catalog: &str, state: &Snapshot, form: Form) -> Result<Option<Checked>, Wrong> {
        let (route, word) = match form {
            Form::Zstd => (ALL_ZSTD, "-zstd"),
            Form::Gzip => (ALL_GZIP, "-gzip"),
            Form::Identity => (ALL_IDENTITY, ""),
        };
        let content = state.content_hash;
        let stored = state.all.form(form);
        let key = Key::All(name(catalog)?, content, form);
        let wanted = Wanted::new(route, path(&key), Promise::object(content, word, stored));
        match (self.get(&wanted).await?, stored) {
            (Some(found), _) => Ok(Some(found)),
            (None, Some(_)) => self.gone(catalog, content, &wanted).await.map(|()| None),
            (None, None) => {
                self.shared.tally.with(route, |row| row.other += 1);
                Ok(None)
            }
        }
    }
}

fn shard_of(shard: &ShardRef) -> Wanted {
    let promise = Promise::object(shard.sha256, "-zstd", Some(shard.stored));
    Wanted::new(SHARD, path(&Key::Shard(shard.sha256)), promise)
}

fn index_of(catalog: &str, state: &Snapshot) -> Result<Wanted, Wrong> {
    let promise = Promise::object(state.content_hash, "-index", Some(state.index));
    Ok(Wanted::new(
        INDEX,
        path(&Key::Index(name(catalog)?, state.content_hash)),
        promise,
    ))
}

fn blob_of(state: &Snapshot) -> Result<Wanted, Wrong> {
    let image = state
        .image
        .as_ref()
        .ok_or_else(|| Wrong::Missing("the image of a snapshot".to_owned()))?;
    let blobs: Vec<_> = image.blobs().collect();
    let blob = any(&blobs);
    let promise = Promise::object(blob.sha256, "", Some(*blob));
    Ok(Wanted::new(BLOB, path(&Key::Blob(blob.sha256)), promise))
}

/// Every line of every shard, one after the other.
fn fits(index: &Index, state: &Snapshot, shards: &[bytes::Bytes]) -> Result<(), Wrong> {
    let told = index.shards.iter().map(|shard| shard.sha256);
    let named = state.shards().map(|shard| shard.sha256);
    equal("that an index has the shards of its snapshot", &told.eq(named), &true)?;
    for (indexed, lines) in index.shards.iter().zip(shards) {
        let mut next = 0;
        for meta in &indexed.metas {
            equal("where a line starts", &meta.offset, &next)?;
            next += meta.length;
            let at = usize::try_from(next).unwrap_or(usize::MAX);
            equal(
                "the last byte of a line",
                &lines.get(at.wrapping_sub(1)).copied().unwrap_or_default(),
                &b'\n',
            )?;
        }
        equal("where the last line ends", &next, &(lines.len() as u64))?;
    }
    Ok(())
}

fn name(catalog: &str) -> Result<CatalogName, Wrong> {
    catalog.parse().map_err(|_| Wrong::Mixed(catalog.to_owned()))
}
