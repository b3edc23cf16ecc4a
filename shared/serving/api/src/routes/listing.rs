//! JSON documents that are made for an answer: lists of catalogs and packages, and results of
//! searches.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use model::{Facts, Kind, ShardRef, StoredDocument};
use olm::{SEARCH, SearchIndex};
use reader::{Corruption, PublishedState, ReaderError};
use serde_json::{Value, json};

use super::RouteCall;
use crate::{app::App, error::ApiError, respond::Representation, rfc9110::search_query};

/// Reads pointers only, so the cost does not depend on the size of the catalogs.
pub(super) async fn catalogs(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let states = call.app.catalogs.all().await?;
    let catalogs: Vec<Value> = states.iter().map(catalog).collect();
    Ok(Representation::document(line(
        &json!({"catalogs": catalogs}),
    )))
}

pub(super) async fn packages(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let snapshot = state.snapshot().await?;
    let packages: Vec<Value> = snapshot.packages.iter().map(package).collect();
    let list = json!({"contentHash": state.current().content_hash, "packages": packages});
    Ok(Representation::document(line(&list)).dated(&call.app.head(&state)))
}

fn catalog(state: &PublishedState) -> Value {
    let current = state.current();
    json!({
        "name": state.name(),
        "contentHash": current.content_hash,
        "serial": current.serial,
        "publishedAt": humantime::format_rfc3339_seconds(current.published_at).to_string(),
        "source": {"ref": shown(&current.source.reference), "digest": current.source.revision},
        "packages": current.packages,
        "metas": current.metas,
        "sizes": {
            "identity": current.size,
            "gzip": current.all.gzip.digest.size,
            "zstd": current.all.zstd.digest.size,
        },
    })
}

/// Returns a source without the folders in which it lies on the server.
fn shown(reference: &str) -> Cow<'_, str> {
    match reference.split_once(':') {
        Some((scheme @ ("dir" | "oci"), path)) => {
            let name = path.rsplit('/').next().unwrap_or_default();
            format!("{scheme}:{name}").into()
        }
        _ => reference.into(),
    }
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
    let content_hash = state.current().content_hash;
    let (text, offset, limit) = (query.text.clone(), query.offset, query.limit);
    let (weight, find) = (index.weight(), move || index.find(&query));
    let found = call.app.catalogs.run(weight, find).await?;
    let answer = json!({
        "contentHash": content_hash,
        "query": text,
        "offset": offset,
        "limit": limit,
        "total": found.total,
        "results": found.results,
        "facets": found.facets,
    });
    Ok(Representation::document(line(&answer)).dated(&call.app.head(&state)))
}

impl App {
    /// Returns the index of a published state, from memory or into it.
    async fn search_index(&self, state: &PublishedState) -> Result<Arc<SearchIndex>, ApiError> {
        let snapshot = state.snapshot().await?;
        let object = snapshot.facts(SEARCH.name).ok_or(ApiError::NoSearch)?;
        let load = || async {
            let bytes = self.catalogs.object(&object).await?;
            let parse = move || Facts::from_stored(&bytes).map(SearchIndex::new);
            // Twenty times, because the texts are compressed and words are sorted.
            let parsed = self.catalogs.run(20 * object.digest.size, parse).await;
            let corrupt =
                |source| ReaderError::corrupt(&object.key(), Corruption::Document(source));
            Ok(parsed.map(Arc::new).map_err(corrupt)?)
        };
        self.searches.get_or_load(&object.digest.sha256, load).await
    }
}

/// Returns a document as one line of text.
fn line(document: &Value) -> Bytes {
    format!("{document}\n").into()
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
            assert_eq!(shown(reference), expected);
        }
    }
}
