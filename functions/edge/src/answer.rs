//! Turns a request of JavaScript into one of the router, and the response back.

use axum::body::{Body, HttpBody, to_bytes};
use futures_util::{Stream, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use worker::{
    EncodeBody, FixedLengthStream, Headers, ResponseBuilder, js_sys, worker_sys,
    worker_sys::web_sys,
};

use crate::bucket::WHOLE_MAX;

/// Returns the request that the client made. A URL or a field that the router cannot read is an
/// error.
pub(crate) fn request(request: &worker::Request) -> worker::Result<Request<Body>> {
    let asked = request.inner();
    let mut made = Request::builder()
        .method(&*asked.method())
        .uri(asked.url())
        .body(Body::empty())?;
    let fields = made.headers_mut();
    for (name, value) in request.headers().entries() {
        // No route needs a field that is not ASCII.
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
            fields.append(name, value);
        }
    }
    // Cloudflare replaces the field by what it can do itself (Workers, "Request",
    // `cf.clientAcceptEncoding`).
    if let Some(codings) = client_codings(asked) {
        fields.insert(header::ACCEPT_ENCODING, codings);
    }
    Ok(made)
}

fn client_codings(request: &web_sys::Request) -> Option<HeaderValue> {
    let cf = js_sys::Reflect::get(request, &"cf".into()).ok()?;
    let codings = js_sys::Reflect::get(&cf, &"clientAcceptEncoding".into()).ok()?;
    codings.as_string()?.try_into().ok()
}

/// Returns the length of a body as its header fields give it.
pub(crate) fn content_length(head: &HeaderMap) -> Option<u64> {
    let length = head.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// Returns a response as the runtime sends it: without coding it a second time, and with its length
/// where that is known.
pub(crate) async fn response(response: Response<Body>) -> worker::Result<web_sys::Response> {
    let (head, body) = response.into_parts();
    let builder = ResponseBuilder::new()
        .with_status(head.status.as_u16())
        .with_headers(Headers::from(&head.headers))
        .with_encode_body(EncodeBody::Manual);
    // JavaScript refuses any body beside this status, also an empty one.
    if body.is_end_stream() || head.status == StatusCode::NOT_MODIFIED {
        return Ok(builder.empty().into());
    }
    let made = match content_length(&head.headers) {
        Some(length) if length <= WHOLE_MAX => {
            let bytes = to_bytes(body, usize::MAX).await;
            builder.fixed(bytes.map_err(|error| error.to_string())?.into())
        }
        Some(length) => {
            let stream = FixedLengthStream::wrap(chunks(body), length);
            builder.stream(worker_sys::FixedLengthStream::from(stream).readable())
        }
        None => builder.from_stream(chunks(body))?,
    };
    Ok(made.into())
}

fn chunks(body: Body) -> impl Stream<Item = worker::Result<Vec<u8>>> {
    body.into_data_stream().map(|chunk| match chunk {
        Ok(chunk) => Ok(Vec::from(chunk)),
        Err(error) => Err(error.to_string().into()),
    })
}
