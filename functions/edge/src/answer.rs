//! Turns a request of JavaScript into one of the router, and the response back.

use axum::body::{Body, HttpBody, to_bytes};
use futures_util::{Stream, StreamExt};
use http::{HeaderValue, Request, Response, StatusCode, header};
use worker::{
    EncodeBody, FixedLengthStream, Headers, ResponseBuilder, js_sys, worker_sys,
    worker_sys::web_sys,
};

use crate::bucket::WHOLE_MAX;

/// Returns the request that the client made. A URL or a field that the router cannot read is an
/// error.
pub(crate) fn request(request: &worker::Request) -> worker::Result<Request<Body>> {
    let asked = request.inner();
    let made = Request::builder().method(&*asked.method()).uri(asked.url());
    let mut made = made.body(Body::empty())?;
    // Without fields that no route needs because they are no ASCII.
    let fields = request.headers().entries();
    let fields = fields.filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)));
    *made.headers_mut() = fields.collect();
    // Cloudflare replaces the field by what it can do itself (Workers, "Request",
    // `cf.clientAcceptEncoding`).
    if let Some(codings) =
        client_codings(asked).and_then(|codings| HeaderValue::try_from(codings).ok())
    {
        made.headers_mut().insert(header::ACCEPT_ENCODING, codings);
    }
    Ok(made)
}

fn client_codings(request: &web_sys::Request) -> Option<String> {
    let cf = js_sys::Reflect::get(request, &"cf".into()).ok()?;
    let codings = js_sys::Reflect::get(&cf, &"clientAcceptEncoding".into()).ok()?;
    codings.as_string()
}

/// Returns a response as the runtime sends it: without coding it a second time, and with its length
/// where that is known.
pub(crate) async fn response(response: Response<Body>) -> worker::Result<web_sys::Response> {
    let (head, body) = response.into_parts();
    let length = head.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let builder = ResponseBuilder::new()
        .with_status(head.status.as_u16())
        .with_headers(Headers::from(&head.headers))
        .with_encode_body(EncodeBody::Manual);
    let made = match length {
        // JavaScript refuses any body beside this status, also an empty one.
        _ if body.is_end_stream() || head.status == StatusCode::NOT_MODIFIED => builder.empty(),
        Some(length) if length <= WHOLE_MAX => {
            let bytes = to_bytes(body, usize::MAX).await;
            builder.fixed(bytes.map_err(|error| error.to_string())?.into())
        }
        Some(length) => {
            let sent =
                worker_sys::FixedLengthStream::from(FixedLengthStream::wrap(chunks(body), length));
            builder.stream(sent.readable())
        }
        None => builder.from_stream(chunks(body))?,
    };
    Ok(made.into())
}

fn chunks(body: Body) -> impl Stream<Item = worker::Result<Vec<u8>>> {
    let chunks = body.into_data_stream();
    chunks.map(|chunk| {
        chunk
            .map(Vec::from)
            .map_err(|error| error.to_string().into())
    })
}
