//! JSON documents that are made for an answer: lists of catalogs and packages, and results of
//! searches.

use std::sync::Arc;

use bytes::Bytes;
use model::text::without_folders;
use model::{Encoding, Facts, Kind, Sha256, ShardRef, StoredDocument};
use olm::{SEARCH, SearchIndex};
use reader::{BodyKey, PublishedState, ReaderError};
use serde_json::{Value, json};

use crate::{
    app::App,
    call::RouteCall,
    error::ApiError,
    representation::Representation,
    rfc9110::{ListPage, search_query},
};

/// Memory to make one row of a list, in bytes: its values and its text.
const ROW_BYTES: u64 = 2 << 10;

/// Returns the document with this identity, which is made of so many rows if it is not in memory.
pub(super) async fn list<F>(
    call: RouteCall<'_>,
    identity: Sha256,
    rows: usize,
    make: impl FnOnce() -> F,
) -> Result<Representation, ApiError>
where
    F: Future<Output = Result<Value, ApiError>>,
{
    let key = BodyKey::Made(identity, Encoding::Identity);
    let list = call.app.catalogs.body(&key, || async {
        let _memory = call.memory(ROW_BYTES * rows as u64).await?;
        let list = make().await?;
        Ok::<_, ApiError>(Bytes::from(format!("{list}\n")))
    });
    call.document(list.await?).await
}

/// Returns a hash that no other list has: of its kind, of what it is made from, and of the query.
pub(super) fn identity(kind: &str, made_from: &[Sha256], query: &str) -> Sha256 {
    let mut text = kind.as_bytes().to_vec();
    for hash in made_from {
        text.extend_from_slice(hash.as_bytes());
    }
    text.extend_from_slice(query.as_bytes());
    Sha256::of(&text)
}

/// Reads pointers only, so the cost does not depend on the size of the catalogs.
pub(super) async fn catalogs(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let states = call.app.catalogs.all().await?;
    let pointers: Vec<Sha256> = states.iter().map(PublishedState::document_hash).collect();
    let identity = identity("catalogs", &pointers, "");
    let list = list(call, identity, states.len(), || async {
        let catalogs: Vec<Value> = states.iter().map(catalog).collect();
        Ok(json!({"catalogs": catalogs}))
    });
    list.await
}

pub(super) async fn packages(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let page = ListPage::of_query(call.query())?;
    let state = call.state().await?;
    let snapshot = state.snapshot().await?;
    let identity = identity("packages", &[state.identity()], &page.to_string());
    let all = &snapshot.packages;
    let first = page.offset.min(all.len());
    let count = page.limit.unwrap_or(all.len()).min(all.len() - first);
    let list = list(call, identity, count, || async {
        let packages: Vec<Value> = all[first..first + count].iter().map(package).collect();
        Ok(json!({
            "contentHash": state.current().content_hash,
            "offset": page.offset,
            "total": all.len(),
            "packages": packages,
        }))
    });
    Ok(list.await?.dated(&call.app.head(&state)))
}

fn catalog(state: &PublishedState) -> Value {
    let current = state.current();
    json!({
        "name": state.name(),
        "contentHash": current.content_hash,
        "serial": current.serial,
        "publishedAt": humantime::format_rfc3339_seconds(current.published_at).to_string(),
        "source": {"ref": without_folders(&current.source.reference), "digest": current.source.revision},
        "packages": current.packages,
        "metas": current.metas,
        "sizes": {
            "identity": current.size,
            "gzip": current.all.gzip.digest.size,
            "zstd": current.all.zstd.digest.size,
        },
    })
}

fn package(shard: &ShardRef) -> Value {
    let object = shard.stored.with_kind(Kind::Package);
    json!({
        "name": shard.name,
        "sha256": shard.lines.sha256,
        "size": shard.lines.size,
        "metas": shard.metas,
        "object": {"key": object.key().to_string(), "size": object.digest.size},
    })
}

pub(super) async fn search(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let query = search_query(call.query())?;
    let state = call.state().await?;
    let index = call.app.search_index(&state).await?;
    let identity = identity("search", &[state.identity()], call.query());
    let rows = 1 + query.limit;
    let list = list(call, identity, rows, || async {
        let content_hash = state.current().content_hash;
        let text = query.text.clone();
        let offset = query.offset;
        let limit = query.limit;
        let weight = index.weight();
        let found = call
            .app
            .catalogs
            .run(weight, move || index.find(&query))
            .await?;
        Ok(json!({
            "contentHash": content_hash,
            "query": text,
            "offset": offset,
            "limit": limit,
            "total": found.total,
            "results": found.results,
            "facets": found.facets,
        }))
    });
    Ok(list.await?.dated(&call.app.head(&state)))
}

impl App {
    /// Returns the index of a published state, from memory or into it.
    async fn search_index(&self, state: &PublishedState) -> Result<Arc<SearchIndex>, ApiError> {
        let snapshot = state.snapshot().await?;
        let object = snapshot.facts(SEARCH.name).ok_or(ApiError::NoSearch)?;
        let index = self.searches.get_or_load(&object.digest.sha256, || async {
            let bytes = self.catalogs.object(&object).await?;
            // Twenty times, because the texts are compressed and words are sorted.
            let memory = 20 * object.digest.size;
            let parsed = self.catalogs.run(memory, move || {
                Facts::from_stored(&bytes).map(SearchIndex::new)
            });
            let index = parsed.await.map_err(ReaderError::document(&object.key()))?;
            Ok(Arc::new(index))
        });
        index.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_shown_without_folders_of_the_server() {
        for (reference, expected) in [
            ("dir:/home/ops/configs", "dir:configs"),
            ("dir:configs", "dir:configs"),
            ("oci:/srv/images/catalog:v1", "oci:catalog:v1"),
            ("quay.io/a/b:v1", "quay.io/a/b:v1"),
            (
                "https://a.example/x/c.tar.gz#configs",
                "https://a.example/x/c.tar.gz#configs",
            ),
        ] {
            assert_eq!(without_folders(reference), expected);
        }
    }
}
