//! Routes that a program serves beside those of the API, such as `/metrics`.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use model::Encoding;

use crate::call::COMPRESSED_MIN;
use crate::coding::encode_all;
use crate::error::{self, ApiError};
use crate::rfc9110::{negotiate, no_parameters};

/// Maximum size of an answer, in bytes: metrics of a hundred thousand catalogs.
const ANSWER_MAX: usize = 256 << 20;

/// Returns the routes with the rules of the API: small answers are compressed, and unknown query
/// parameters are refused.
pub fn beside(routes: Router) -> Router {
    routes.layer(from_fn(answer))
}

async fn answer(request: Request, next: Next) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let encoding = match accepted(&parts) {
        Ok(encoding) => encoding,
        Err(error) => return error::respond(&parts.method, parts.uri.path(), &error),
    };
    let method = parts.method.clone();
    let response = next.run(Request::from_parts(parts, body)).await;
    if response.status() == StatusCode::OK {
        compressed(response, &method, encoding).await
    } else {
        response
    }
}

/// Returns the encoding for an answer, unless the request is refused.
fn accepted(request: &Parts) -> Result<Encoding, ApiError> {
    no_parameters(request.uri.query().unwrap_or_default())?;
    negotiate(&request.headers, &Encoding::ALL).ok_or(ApiError::NotAcceptable)
}

async fn compressed(
    response: Response<Body>,
    method: &Method,
    encoding: Encoding,
) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    let vary = HeaderValue::from_static("Accept-Encoding");
    head.headers.insert(header::VARY, vary);
    if *method == Method::HEAD {
        // It would be that of the plain answer.
        head.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(head, body);
    }
    let Ok(plain) = to_bytes(body, ANSWER_MAX).await else {
        head.status = StatusCode::INTERNAL_SERVER_ERROR;
        return Response::from_parts(head, Body::empty());
    };
    let coding = encoding.content_encoding();
    let Some(coding) = coding.filter(|_| plain.len() as u64 >= COMPRESSED_MIN) else {
        return Response::from_parts(head, Body::from(plain));
    };
    head.headers.remove(header::CONTENT_LENGTH);
    let coding = HeaderValue::from_static(coding);
    head.headers.insert(header::CONTENT_ENCODING, coding);
    let coded = encode_all(plain, encoding).expect("compressors of memory do not fail");
    Response::from_parts(head, Body::from(coded))
}
