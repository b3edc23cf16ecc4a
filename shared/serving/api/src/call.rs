//! A request whose route is known, and the type of the routes.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::request::Parts;
use model::Encoding;
use reader::PublishedState;

use crate::app::App;
use crate::error::ApiError;
use crate::representation::Representation;
use crate::rfc9110::{decode, negotiate, no_parameters};

/// Size below which an answer is sent uncompressed, in bytes: with its header, a compressed one
/// saves no packet.
pub(crate) const COMPRESSED_MIN: u64 = 1 << 10;

/// Routes that read a query by themselves.
const WITH_QUERY: &[&str] = &[
    "/catalogs/{catalog}/changes",
    "/catalogs/{catalog}/api/v1/metas",
    "/catalogs/{catalog}/packages",
    "/catalogs/{catalog}/search",
];

/// One route of the contract.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    /// Path with its parameters in braces. It is also the `route` label of the metrics.
    pub(crate) path: &'static str,
    /// Makes the representation that a plain GET is answered with.
    pub(crate) handler: Handler,
}

/// A handler, which makes the representation of a route. Its future is boxed, so that the future of
/// a request is small: it is moved more than once.
pub(crate) type Handler =
    for<'a> fn(RouteCall<'a>) -> BoxFuture<'a, Result<Representation, ApiError>>;

/// A route that a path belongs to, with the parameters of the path by name, percent-encoded as the
/// client sent them.
pub(crate) type Match<'a> = matchit::Match<'static, 'a, &'static Route>;

/// A request whose route is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteCall<'a> {
    pub(crate) app: &'a Arc<App>,
    pub(crate) request: &'a Parts,
    pub(crate) matched: &'a Match<'a>,
}

impl<'a> RouteCall<'a> {
    /// Refuses a parameter that the route does not have.
    pub(crate) fn check_query(&self) -> Result<(), ApiError> {
        let path = self.matched.value.path;
        // As other registries do: containerd, for example, names the registry that a mirror stands
        // for.
        let is_of_registry = path.starts_with("/v2");
        if is_of_registry || WITH_QUERY.contains(&path) {
            return Ok(());
        }
        no_parameters(self.query())
    }

    pub(crate) fn query(&self) -> &'a str {
        self.request.uri.query().unwrap_or_default()
    }

    /// Returns a parameter of the path without percent-encoding: an escaped name is the name that
    /// it stands for (RFC 3986, section 6.2.2.2).
    pub(crate) fn param(&self, name: &str) -> Cow<'a, str> {
        decode(self.matched.params.get(name).unwrap_or_default())
    }

    /// Returns the encoding that the client prefers.
    pub(crate) fn encoding(&self) -> Result<Encoding, ApiError> {
        negotiate(&self.request.headers, &Encoding::ALL).ok_or(ApiError::NotAcceptable)
    }

    /// Returns identity for small answers that a client accepts so, else the preferred encoding.
    pub(crate) fn encoding_for(&self, length: u64) -> Result<Encoding, ApiError> {
        let plain = negotiate(&self.request.headers, &[Encoding::Identity]);
        plain
            .filter(|_| length < COMPRESSED_MIN)
            .map_or_else(|| self.encoding(), Ok)
    }

    /// Returns the published state of the catalog: the one that a layer in front has put into the
    /// extensions of the request, else the newest.
    pub(crate) async fn state(&self) -> Result<PublishedState, ApiError> {
        if let Some(state) = self.request.extensions.get::<PublishedState>() {
            return Ok(state.clone());
        }
        Ok(self.app.catalogs.find(&self.param("catalog")).await?)
    }
}
