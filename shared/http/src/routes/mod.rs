//! The routes. One constant in one file declares all of a route: its path, its handler, and what its description and the
//! metrics need. The router, `/openapi.json`, the metrics' `route` label, 405 and the lists of tests iterate over [`ROUTES`].
//!
//! The table is our own: axum's matcher takes whole segments as parameters only, so `utoipa-axum` could not declare
//! `/all/sha256/{hash}.json.gz`, and HEAD, conditions, ranges and errors are alike on all routes.

mod catalogs;
mod changes;
mod graphql;
mod listing;
mod matcher;
mod metas;
mod objects;
mod probes;
mod registry;
mod search;

use std::{borrow::Cow, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, request::Parts};
use model::CatalogName;
use reader::{PublishedState, ReaderError};

pub(crate) use self::{
    listing::{AllSizes, CatalogEntry, CatalogList, CatalogOrigin, PackageEntry, PackageList, StoredPackage},
    matcher::{Match, find},
    registry::{EarlierImages, RepositoryList, TagList},
    search::SearchAnswer,
};
use crate::{
    app::App,
    content::AllowedMethods,
    error::ApiError,
    respond::Representation,
    rfc9110::{Precondition, decode, evaluate},
};

/// All routes. A path that matches several belongs to the first.
pub(crate) const ROUTES: &[Route] = &[
    listing::CATALOGS,
    catalogs::NAMES,
    catalogs::CURRENT,
    catalogs::STATUS,
    catalogs::CONTENT_HASH,
    changes::CHANGES,
    metas::API_ALL,
    metas::ALL,
    metas::METAS,
    graphql::GRAPHQL,
    listing::PACKAGES,
    search::SEARCH,
    metas::PACKAGE,
    objects::SNAPSHOT,
    objects::INDEX,
    objects::FINDINGS,
    objects::SEARCH,
    objects::GRAPH,
    objects::ALL_ZSTD,
    objects::ALL_GZIP,
    objects::ALL_IDENTITY,
    objects::SHARD,
    objects::BLOB,
    registry::BASE,
    registry::BASE_WITHOUT_SLASH,
    registry::REPOSITORIES,
    registry::TAGS,
    registry::MANIFEST,
    registry::UPLOADS,
    registry::UPLOADS_WITH_SLASH,
    registry::UPLOAD,
    registry::IMAGE_BLOB,
    registry::REFERRERS,
    probes::HEALTH,
    probes::READINESS,
    probes::CONTRACT,
];

/// One route of the contract.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    /// Path with its parameters in braces. It is also the `route` label of the metrics.
    pub(crate) path: &'static str,
    /// Makes the representation that a plain GET is answered with.
    pub(crate) handler: Handler,
    /// Methods that it answers.
    pub(crate) methods: AllowedMethods,
    /// Operation id of the description; empty for routes that are not described.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) body: BodyType,
    /// Query parameters, each with its description.
    pub(crate) query: &'static [(&'static str, &'static str)],
    /// True if the coding follows `Accept-Encoding`.
    pub(crate) negotiated: bool,
    /// True if the representation has a modification date.
    pub(crate) dated: bool,
    /// Redirection of large bodies to the object that holds the same bytes.
    pub(crate) redirect: Redirect,
    /// Statuses of errors beside 405, 412, 416 and those of authentication.
    pub(crate) errors: &'static [u16],
}

/// Redirection of bodies that are too large to be sent from a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// The body is never an object.
    Never,
    /// Both GET and HEAD are redirected.
    Always,
    /// Only GET is redirected. Registry clients send HEAD for a blob before they get it, and that alone for one that they
    /// have. A presigned URL is signed for GET only, and a HEAD needs nothing from there.
    GetOnly,
}

/// Content of a body, for the description.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BodyType {
    /// A JSON document of this schema.
    Json(&'static str),
    /// A JSON document of the store.
    AnyJson,
    /// JSON, one Meta on each line.
    Lines,
    /// One line of plain text.
    Text,
    /// A JSON document of this media type.
    Document(&'static str),
    /// Bytes of any media type.
    Bytes,
}

/// The future of a handler. It is boxed, so that the future of a request is small: it is moved more than once.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Result<Representation, ApiError>> + Send + 'a>>;

/// A handler, which makes the representation of a route.
pub(crate) type Handler = for<'a> fn(RouteCall<'a>) -> Answering<'a>;

/// A request together with the parameters of its path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteCall<'a> {
    pub(crate) app: &'a Arc<App>,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    /// Content of a POST; `None` for other methods.
    pub(crate) content: Option<&'a Bytes>,
    params: matcher::Params<'a>,
}

/// Defaults of a JSON document of a catalog.
const DOCUMENT: Route = Route {
    path: "",
    handler: |_| Box::pin(async { Err(ApiError::UnknownPath) }),
    methods: AllowedMethods::Read,
    id: "",
    summary: "",
    body: BodyType::AnyJson,
    query: &[],
    negotiated: false,
    dated: false,
    redirect: Redirect::Never,
    errors: &[400, 404, 503],
};

impl<'a> RouteCall<'a> {
    pub(crate) fn new(
        app: &'a Arc<App>,
        request: &'a Parts,
        content: Option<&'a Bytes>,
        params: matcher::Params<'a>,
    ) -> Self {
        Self {
            content,
            app,
            query: request.uri.query().unwrap_or_default(),
            headers: &request.headers,
            params,
        }
    }

    /// Returns a parameter of the path without percent-encoding.
    fn param(&self, name: &str) -> Cow<'a, str> {
        decode(self.params.get(name).unwrap_or_default())
    }

    /// Returns the name of the catalog. An escaped name is the name that it stands for (RFC 3986, section 6.2.2.2).
    fn catalog(&self) -> Result<Cow<'a, str>, ApiError> {
        let name = self.param("catalog");
        // A known name is not parsed again: every 304 would pay for it.
        if self.app.catalogs.knows(&name) {
            return Ok(name);
        }
        name.parse::<CatalogName>().map_err(ReaderError::CatalogName)?;
        Ok(name)
    }

    /// Returns the published state of the catalog.
    async fn state(&self) -> Result<PublishedState, ApiError> {
        Ok(self.app.catalogs.find(&self.param("catalog")).await?)
    }

    /// True if the conditions of the request want the body of a representation. It need not be made for a 304 or 412.
    fn wants_body(&self, representation: &Representation) -> bool {
        // Those of a POST are about what GET answers.
        self.content.is_some() || evaluate(self.headers, representation.validators()) == Precondition::Proceed
    }
}

/// Returns the error of a path without a route.
pub(crate) fn unmatched(path: &str) -> ApiError {
    if let Some(rest) = path.strip_prefix("/v2/") {
        return registry::unmatched(rest);
    }
    // A bad catalog name is distinguished from an unknown path, as catalogd's clients expect.
    let catalog = path.strip_prefix("/catalogs/").and_then(|rest| rest.split_once('/'));
    match catalog.map(|(name, _)| decode(name).parse::<CatalogName>()) {
        Some(Err(error)) => ReaderError::CatalogName(error).into(),
        Some(Ok(_)) | None => ApiError::UnknownPath,
    }
}

/// True if a path is answered without credentials. Probes of a supervisor have none, and the answers tell nothing but that
/// the process lives.
pub fn is_probe(path: &str) -> bool {
    path == probes::HEALTH.path || path == probes::READINESS.path
}

/// True if a request has content that its route reads. The content of all others is not read.
pub fn takes_content(method: &Method, path: &str) -> bool {
    *method == Method::POST && find(path).is_some_and(|found| found.route.methods.has(method))
}

/// Returns the paths of all routes with their parameters in braces, for tests that try every route.
pub fn route_paths() -> impl Iterator<Item = &'static str> {
    ROUTES.iter().map(|route| route.path)
}
