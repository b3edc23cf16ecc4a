use std::sync::Arc;

use model::{Facts, StoredDocument};
use olm::{SEARCH, SearchIndex};
use reader::{Corruption, PublishedState, ReaderError};
use serde_json::json;

use super::{RouteCall, listing::line};
use crate::{error::ApiError, respond::Representation, rfc9110::search, router::App};

pub(super) async fn find(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let query = search(call.query())?;
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
        let load = async {
            let bytes = self.catalogs.object(&object).await?;
            let parse = move || Facts::from_stored(&bytes).map(SearchIndex::new);
            // Twenty times, because the texts are compressed and words are sorted.
            let parsed = self.catalogs.run(20 * object.digest.size, parse).await;
            let corrupt = |source| ReaderError::corrupt(&object.key(), Corruption::Document(source));
            Ok(parsed.map(Arc::new).map_err(corrupt)?)
        };
        self.searches.get_or_load(&object.digest.sha256, load).await
    }
}
