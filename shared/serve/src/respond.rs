use std::sync::Arc;

use axum::body::Body;
use futures_util::TryStreamExt;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{
        ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LAST_MODIFIED, LOCATION,
        RANGE, VARY,
    },
};
use layout::CachePolicy;

use crate::{
    app::App,
    error::Error,
    fields::{Modified, Outcome, Ranges, Tag, Validators, evaluate, if_range_holds, parse_ranges},
    route::Route,
    settings::{Large, Locate},
    source::{Content, Source},
    stream::Chunks,
};

/// What is known of a request once its target is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) route: Route,
}

impl Asked<'_> {
    /// Clients of registries ask for a blob by HEAD before they get it, and by that alone for one that they have. The URL
    /// that a GET is sent to may be signed for GET only, as S3 signs it, and a HEAD needs nothing from there.
    fn is_never_redirected(&self) -> bool {
        self.method == Method::HEAD && self.route == Route::RegistryBlob
    }
}

/// What a plain GET would be answered with (RFC 9110, section 3.2).
#[derive(Debug)]
pub(crate) struct Representation {
    pub(crate) tag: Tag,
    pub(crate) modified: Option<Modified>,
    pub(crate) cache: CachePolicy,
    pub(crate) content_type: &'static str,
    pub(crate) encoding: Option<HeaderValue>,
    /// Whether `Accept-Encoding` had a say.
    pub(crate) negotiated: bool,
    /// A field that only some routes have.
    pub(crate) extra: Option<Box<(HeaderName, HeaderValue)>>,
    pub(crate) source: Source,
}

impl Representation {
    /// What the answers to conditional requests have in common with the whole one (RFC 9110, section 15.4.5).
    fn begin(&self, status: StatusCode) -> Response<Body> {
        let mut headers = HeaderMap::with_capacity(12);
        headers.insert(ETAG, self.tag.header().clone());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(self.cache.cache_control()));
        if self.negotiated {
            headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if let Some(modified) = &self.modified {
            headers.insert(LAST_MODIFIED, modified.header().clone());
        }
        headers.extend(self.extra.as_deref().cloned());
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    fn ok(&self) -> Response<Body> {
        let mut response = self.begin(StatusCode::OK);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(encoding) = &self.encoding {
            headers.insert(CONTENT_ENCODING, encoding.clone());
        }
        response
    }

    fn not_modified(&self) -> Response<Body> {
        let mut response = self.begin(StatusCode::NOT_MODIFIED);
        // A body whose end is not known: of an empty one the length would be announced, and on a 304 that is a claim
        // about the representation (RFC 9110, section 8.6).
        *response.body_mut() = Body::new(Unannounced);
        response
    }

    const fn validators(&self) -> Validators<'_> {
        Validators {
            tag: &self.tag,
            modified: self.modified.as_ref(),
        }
    }
}

impl App {
    /// Answers with a representation, the conditions and ranges of the request permitting.
    pub(crate) async fn respond(
        self: &Arc<Self>,
        asked: Asked<'_>,
        representation: Representation,
    ) -> Result<Response<Body>, Error> {
        match evaluate(asked.headers, representation.validators()) {
            Outcome::Proceed => {}
            Outcome::NotModified => return Ok(representation.not_modified()),
            Outcome::Failed => return Err(Error::PreconditionFailed),
        }
        if let Large::Redirect { above, to } = &self.settings.large
            && !asked.is_never_redirected()
            && let Some(redirect) = Box::pin(redirect(&representation, *above, to.as_ref())).await?
        {
            return Ok(redirect);
        }
        let ranged = asked.method == Method::GET && if_range_holds(asked.headers, representation.validators());
        let range = asked.headers.get(RANGE).filter(|_| ranged);
        let mut response = representation.ok();
        let content = self.open(representation.source).await?;
        if !asked.is_never_redirected() {
            self.check_inline(&content)?;
        }
        let Some(length) = content.length() else {
            // Made as it is sent, so it cannot be promised to be the same the next time, and not be cut.
            return self.whole(asked, response, content).await;
        };
        let headers = response.headers_mut();
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        match range.map_or(Ranges::Whole, |range| parse_ranges(range.as_bytes(), length)) {
            Ranges::Whole => self.whole(asked, response, content).await,
            Ranges::Parts(parts) if !content.is_cheap(&parts) => self.whole(asked, response, content).await,
            Ranges::Parts(parts) => Box::pin(self.partial(asked, response, content, parts)).await,
            Ranges::Unsatisfiable => Err(Error::Range(length)),
        }
    }

    async fn whole(
        self: &Arc<Self>,
        asked: Asked<'_>,
        mut response: Response<Body>,
        content: Content,
    ) -> Result<Response<Body>, Error> {
        if asked.method == Method::GET {
            *response.body_mut() = match content.memory() {
                Some(bytes) => self.sent(asked.route, bytes.clone()),
                None => self.streamed(asked.route, Box::pin(self.chunks(content)).await?),
            };
        }
        Ok(response)
    }

    fn check_inline(&self, content: &Content) -> Result<(), Error> {
        match &self.settings.large {
            Large::Redirect { above, .. } if content.length().is_none_or(|length| length > *above) => {
                Err(Error::TooLarge)
            }
            Large::Redirect { .. } | Large::Stream => Ok(()),
        }
    }

    pub(crate) fn sent(&self, route: Route, bytes: bytes::Bytes) -> Body {
        self.metrics.bytes(route).inc_by(bytes.len() as u64);
        Body::from(bytes)
    }

    /// An error in the middle ends the connection short of the length that was promised, so nobody takes the body for
    /// a complete one; it is logged here because nobody else will see it.
    pub(crate) fn streamed(&self, route: Route, chunks: Chunks) -> Body {
        let bytes = self.metrics.bytes(route).clone();
        Body::from_stream(
            chunks
                .inspect_ok(move |chunk| {
                    bytes.inc_by(chunk.len() as u64);
                })
                .inspect_err(move |error| {
                    tracing::error!(
                        error = error as &dyn std::error::Error,
                        route = route.as_str(),
                        "a body was cut off"
                    );
                }),
        )
    }
}

/// Sends those elsewhere who ask for more than can be answered inline and can get the very same bytes there.
async fn redirect(
    representation: &Representation,
    above: u64,
    to: &dyn Locate,
) -> Result<Option<Response<Body>>, Error> {
    let large = representation.source.length().is_some_and(|length| length > above);
    let Some(key) = representation.source.key().filter(|_| large) else {
        return Ok(None);
    };
    let unknown = |source| Error::Locate {
        key: key.clone(),
        source,
    };
    let location = to.locate(key).await.map_err(unknown)?;
    let url = HeaderValue::try_from(location.url).map_err(|source| unknown(source.into()))?;
    let max_age = match location.max_age.as_secs() {
        0 => HeaderValue::from_static("no-store"),
        seconds => HeaderValue::try_from(format!("public, max-age={seconds}")).expect("digits are visible ASCII"),
    };
    let mut response = representation.begin(StatusCode::TEMPORARY_REDIRECT);
    response.headers_mut().insert(LOCATION, url);
    response.headers_mut().insert(CACHE_CONTROL, max_age);
    Ok(Some(response))
}

/// No bytes, without saying so beforehand.
struct Unannounced;

impl http_body::Body for Unannounced {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        std::task::Poll::Ready(None)
    }
}
