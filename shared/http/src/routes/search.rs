use std::sync::Arc;

use model::{CachePolicy, ObjectDigest, SearchDocument, Sha256, StoredDocument};
use olm::{SEARCH_LIMIT_MAX, SearchIndex, SearchQuery, SearchResults};
use serde::Serialize;
use utoipa::ToSchema;

use super::{BodyType, DOCUMENT, Route, RouteCall, listing::json};
use crate::{
    app::{App, blocking},
    error::{ApiError, Corruption},
    pointer::ServedCatalog,
    respond::Representation,
    rfc9110::search,
};

pub(super) const SEARCH: Route = Route {
    path: "/catalogs/{catalog}/search",
    handler: |call| Box::pin(find(call)),
    id: "searchPackages",
    summary: "The packages that have all words of a query, the best ones first",
    body: BodyType::Json("SearchAnswer"),
    query: &[
        (
            "q",
            "Words, all of which a package must have; without any, all packages match",
        ),
        ("package", "Only the package of this name"),
        ("category", "Only packages of this category"),
        ("provider", "Only packages of this provider"),
        ("capability", "Only packages of this capability level"),
        ("arch", "Only packages for this CPU, such as arm64"),
        ("limit", "Number of packages in the answer: 20, at most 100"),
        ("offset", "Number of packages to leave out: 0"),
    ],
    dated: true,
    ..DOCUMENT
};

/// Answer to a search in one published state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchAnswer {
    /// The sha256 of the uncompressed `all.json`.
    content_hash: String,
    /// Query as it was sent.
    query: String,
    /// Number of packages that were left out.
    offset: usize,
    /// Maximum number of packages in this answer.
    limit: usize,
    #[serde(flatten)]
    found: SearchResults,
}

async fn find(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let name = call.catalog()?;
    let query = search(call.query)?;
    let served = call.app.served(&name).await?;
    let index = call.app.search_index(&served).await?;
    let answer = SearchAnswer {
        content_hash: served.current.content_hash.to_string(),
        query: query.text.clone(),
        offset: query.offset,
        limit: query.limit.min(SEARCH_LIMIT_MAX),
        found: search_in(index, query).await,
    };
    Ok(Representation {
        modified: Some(served.modified.clone()),
        ..Representation::document(json(&answer), CachePolicy::Pointer)
    })
}

async fn search_in(index: Arc<SearchIndex>, query: SearchQuery) -> SearchResults {
    let weight = index.weight();
    blocking(weight, move || index.find(&query)).await
}

impl App {
    /// Returns the index of a published state, from memory or into it.
    async fn search_index(&self, served: &ServedCatalog) -> Result<Arc<SearchIndex>, ApiError> {
        let snapshot = self.snapshot(served).await?;
        let digest = snapshot.search.ok_or(ApiError::NoSearch)?;
        let hash: Sha256 = digest.sha256;
        if let Some(index) = self.caches.searches.get(&hash) {
            return Ok(index);
        }
        let load = self.search_document(digest, |document| Arc::new(SearchIndex::new(document)));
        Box::pin(self.caches.searches.get_or_insert_async(&hash, load)).await
    }

    /// Reads the document for queries, and makes something of it.
    pub(crate) async fn search_document<T: Send + 'static>(
        &self,
        digest: ObjectDigest,
        make: impl FnOnce(SearchDocument) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let object = digest.with_kind(SearchDocument::KIND);
        let bytes = self.read_object(&object).await?;
        let parse = move || SearchDocument::from_stored(&bytes).map(make);
        // Twenty times, because the texts are compressed and words are sorted.
        let parsed = blocking(20 * digest.size, parse).await;
        parsed.map_err(|source| ApiError::corrupt(&object.key(), Corruption::Document(source)))
    }
}
