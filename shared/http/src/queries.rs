//! Execution of queries of GraphQL.

use std::{pin::pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{TryStreamExt, future, stream};
use graphql::{
    AnswerForm, CatalogData, CatalogTypes, DataError, GRAPHQL_VERSION, GraphQlRequest, LineStream, MetaPage,
    QueryLimits, TypesError,
};
use model::{Encoding, ObjectDigest, SearchDocument, Sha256, StoredDocument};
use reader::{BodyKey, CatalogIndex, Corruption, Extent, MetaFilter, PublishedState, ReaderError};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, oneshot},
    time::{Instant, timeout_at},
};

use crate::{app::App, coding::encode_all, error::ApiError, settings::Large};

/// Types of GraphQL of a catalog, or the reason for none.
pub(crate) type GraphQlTypes = Result<CatalogTypes, TypesError>;

/// Returns the memory that the types of a catalog take, in bytes.
pub(crate) fn types_weight(types: &Arc<GraphQlTypes>) -> u64 {
    types.as_ref().as_ref().map_or(0, CatalogTypes::weight)
}

/// Maximum time for a query with its turn, as in catalogd.
const TIME_MAX: Duration = Duration::from_secs(5);

/// Maximum size of all answers to queries that are being sent, in bytes: eight of the largest. A client may take its answer
/// slowly, and answers to different queries share no memory.
pub(crate) const ANSWERS_MAX: usize = 256 << 20;

/// An answer that counts against [`ANSWERS_MAX`] until it is sent.
struct HeldAnswer {
    bytes: Bytes,
    _memory: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for HeldAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A query on a published state, which is executed when its answer is asked for.
#[derive(Debug, Clone)]
pub(crate) struct CatalogQuery(Arc<QueryParts>);

#[derive(Debug)]
struct QueryParts {
    state: PublishedState,
    /// Document with the fields of the Metas.
    fields: ObjectDigest,
    request: GraphQlRequest,
    form: AnswerForm,
    identity: Sha256,
}

impl CatalogQuery {
    /// Returns a hash that identifies the answer, which depends on nothing else.
    pub(crate) fn identity(&self) -> Sha256 {
        self.0.identity
    }
}

fn identity(
    state: &PublishedState,
    fields: ObjectDigest,
    request: &GraphQlRequest,
    form: AnswerForm,
    limits: QueryLimits,
) -> Sha256 {
    let mut text = b"graphql".to_vec();
    text.extend_from_slice(&GRAPHQL_VERSION.to_be_bytes());
    // A function and a server may answer for one mirror: what is too large for one is not for the other.
    text.extend_from_slice(&limits.answer.to_be_bytes());
    text.push(match form {
        AnswerForm::NullData => 0,
        AnswerForm::NoData => 1,
    });
    text.extend_from_slice(state.current().content_hash.as_bytes());
    // The types follow from it. Another version of the rules of publication may type the same content otherwise.
    text.extend_from_slice(fields.sha256.as_bytes());
    text.extend_from_slice(&request.identity());
    Sha256::of(&text)
}

impl App {
    /// Describes a query. Nothing is executed before the conditions of the request are evaluated.
    pub(crate) async fn query(
        &self,
        state: PublishedState,
        request: GraphQlRequest,
        form: AnswerForm,
    ) -> Result<CatalogQuery, ApiError> {
        let fields = state.snapshot().await?.search.ok_or(ApiError::NoGraphQl)?;
        Ok(CatalogQuery(Arc::new(QueryParts {
            identity: identity(&state, fields, &request, form, self.query_limits()),
            state,
            fields,
            request,
            form,
        })))
    }

    /// Returns the answer to a query, from memory or into it. Equal queries at the same time are executed once.
    pub(crate) async fn answer_to(self: &Arc<Self>, query: &CatalogQuery) -> Result<Bytes, ApiError> {
        let entry = BodyKey::Made(query.identity(), Encoding::Identity);
        self.hold(self.catalogs.body(&entry, self.execute(query.clone())).await?)
    }

    /// Returns an answer in an encoding, from memory or into it.
    pub(crate) async fn encoded_answer(
        &self,
        query: &CatalogQuery,
        plain: Bytes,
        encoding: Encoding,
    ) -> Result<Bytes, ApiError> {
        if encoding == Encoding::Identity {
            return Ok(plain);
        }
        let make = async {
            let length = plain.len() as u64;
            let encoded = self.catalogs.run(length, move || encode_all(plain, encoding)).await;
            // The compressors fail on no input.
            encoded.map_err(|_| ApiError::NotAcceptable)
        };
        let entry = BodyKey::Made(query.identity(), encoding);
        self.hold(self.catalogs.body(&entry, make).await?)
    }

    /// Counts an answer until it is dropped.
    pub(crate) fn hold(&self, bytes: Bytes) -> Result<Bytes, ApiError> {
        let length = u32::try_from(bytes.len()).map_err(|_| ApiError::TooManyQueries)?;
        let memory = Arc::clone(&self.answers).try_acquire_many_owned(length);
        let _memory = memory.map_err(|_| ApiError::TooManyQueries)?;
        Ok(Bytes::from_owner(HeldAnswer { bytes, _memory }))
    }

    /// Executes a query within its time. Nothing of it goes on afterwards, or once the client has gone.
    async fn execute(self: &Arc<Self>, query: CatalogQuery) -> Result<Bytes, ApiError> {
        let end = Instant::now() + TIME_MAX;
        let turn = timeout_at(end, Arc::clone(&self.queries).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            return Err(ApiError::TooManyQueries);
        };
        let app = Arc::clone(self);
        // Dropped with this future.
        let (_client, gone) = oneshot::channel::<()>();
        let runtime = Handle::current();
        // Parsing lines takes up to a second of CPU, which would keep other requests of this thread waiting.
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            runtime.block_on(async {
                let answer = pin!(app.answer_query(&query));
                match future::select(answer, gone).await {
                    future::Either::Left((answer, _)) => answer,
                    future::Either::Right(_) => Err(ApiError::SlowQuery(TIME_MAX)),
                }
            })
        });
        match timeout_at(end, work).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(ApiError::SlowQuery(TIME_MAX)),
        }
    }

    async fn answer_query(self: &Arc<Self>, query: &CatalogQuery) -> Result<Bytes, ApiError> {
        let parts = &query.0;
        let types = self.graphql_types(parts.fields).await?;
        let types = types
            .as_ref()
            .as_ref()
            .map_err(|error| ApiError::GraphQlTypes(error.clone()))?;
        let metas = PublishedMetas {
            app: Arc::clone(self),
            index: parts.state.index().await?,
            query: query.clone(),
        };
        let answer = types.answer(&parts.request, Arc::new(metas), self.query_limits(), parts.form);
        answer.await.map_err(|error| match error.downcast::<ReaderError>() {
            Ok(error) => ApiError::State(*error),
            // The lines are canonical and were hashed, so another document contradicts them.
            Err(_) => ReaderError::corrupt(&parts.state.current().all.zstd.key(), Corruption::Mismatch).into(),
        })
    }

    /// Returns the limits of a query. A function cannot send what the server can.
    fn query_limits(&self) -> QueryLimits {
        let limits = QueryLimits::default();
        match &self.settings.large {
            Large::Redirect { above, .. } => QueryLimits {
                answer: limits.answer.min(*above),
            },
            Large::Stream => limits,
        }
    }

    async fn graphql_types(&self, digest: ObjectDigest) -> Result<Arc<GraphQlTypes>, ApiError> {
        let hash = digest.sha256;
        let load = async {
            let fields = self.search_document(digest, |document| document.fields).await?;
            let fields = fields.ok_or(ApiError::NoGraphQl)?;
            let key = digest.with_kind(SearchDocument::KIND).key();
            let merged = fields.merged();
            let merged = merged.map_err(|_| ReaderError::corrupt(&key, Corruption::Mismatch))?;
            Ok(Arc::new(CatalogTypes::new(&merged)))
        };
        self.types.get_or_load(&hash, load).await
    }
}

/// Metas of the state that a query is about.
struct PublishedMetas {
    app: Arc<App>,
    index: Arc<CatalogIndex>,
    query: CatalogQuery,
}

#[async_trait]
impl CatalogData for PublishedMetas {
    fn total(&self, schema: &str) -> u64 {
        self.index.count(schema) as u64
    }

    async fn lines(&self, page: &MetaPage) -> Result<LineStream, DataError> {
        let parts = &self.query.0;
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let Some(filter) = filter(page) else {
            return Ok(Box::pin(stream::empty()));
        };
        let lines = parts
            .state
            .page(&filter, number(page.offset), number(page.limit))
            .await?;
        let chunks = self.app.catalogs.lines(&lines, Extent::Prefix).await?;
        Ok(Box::pin(chunks.map_err(DataError::from)))
    }
}

/// Returns the filter of a page; `None` if nothing can match. An `olm.package` has its package in its name.
fn filter(page: &MetaPage) -> Option<MetaFilter> {
    let (mut package, mut name) = (page.package.clone(), page.name.clone());
    if page.schema == "olm.package" && package.is_some() {
        if name.is_some() && name != package {
            return None;
        }
        name = package.take();
    }
    Some(MetaFilter {
        schema: page.schema.clone(),
        package: package.unwrap_or_default(),
        name: name.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hold_takes_exactly_what_all_answers_may_have() {
        let store = Arc::new(store::MemoryStore::new());
        let catalogs = reader::PublishedCatalogs::new(store, reader::ReaderSettings::default());
        let app = App::new(catalogs, crate::HttpSettings::default(), crate::HttpMetrics::default());
        let answer = Bytes::from(vec![b' '; ANSWERS_MAX / 4]);
        let mut held: Vec<Bytes> = (0..4).map(|_| app.hold(answer.clone()).unwrap()).collect();
        assert!(matches!(
            app.hold(Bytes::from_static(b"a")),
            Err(ApiError::TooManyQueries)
        ));
        // A part of it keeps all of it.
        let part = held.pop().map(|answer| answer.slice(..1));
        assert!(app.hold(answer.clone()).is_err());
        drop(part);
        assert!(app.hold(answer).is_ok());
    }

    #[test]
    fn filter_takes_a_package_for_the_one_that_has_its_name() {
        let filtered = |schema: &str, package: Option<&str>, name: Option<&str>| {
            let found = filter(&MetaPage {
                schema: schema.to_owned(),
                package: package.map(str::to_owned),
                name: name.map(str::to_owned),
                offset: 0,
                limit: 1,
            });
            found.map(|query| (query.package, query.name))
        };
        let found = |package: &str, name: &str| Some((package.to_owned(), name.to_owned()));
        assert_eq!(filtered("olm.package", Some("a"), None), found("", "a"));
        assert_eq!(filtered("olm.package", Some("a"), Some("a")), found("", "a"));
        assert_eq!(filtered("olm.package", Some("a"), Some("b")), None);
        assert_eq!(filtered("olm.package", None, Some("b")), found("", "b"));
        assert_eq!(filtered("olm.bundle", Some("a"), Some("b")), found("a", "b"));
    }
}
