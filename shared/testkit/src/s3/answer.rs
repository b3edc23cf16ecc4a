//! Answers one request of the S3 server.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Query, Request as Incoming, State};
use axum::http::Response;
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use tokio::time::sleep;

use super::bucket::Refusal;
use super::faults::{S3Call, S3Fault, S3Request};
use super::{Conditions, Inner, Shared, reply};
use crate::serving::empty;

/// Time between the check of a condition and the write, if they are two steps.
const BETWEEN: Duration = Duration::from_millis(20);

/// Handles a request: logs it, then fails by script or serves.
pub(super) async fn answer(State(shared): State<Shared>, incoming: Incoming) -> Response<Body> {
    let (parts, body) = incoming.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let query = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
    let query = query.map(|Query(query)| query).unwrap_or_default();
    let path = percent_decode_str(parts.uri.path())
        .decode_utf8_lossy()
        .into_owned();
    let request = S3Request::new(&parts.method, path, query, &parts.headers);
    if request.call == S3Call::Put && shared.lock().conditions == Conditions::CheckedBefore {
        let checked = check(&mut shared.lock(), &request);
        if let Err((status, code)) = checked {
            return reply::error(status, code);
        }
        sleep(BETWEEN).await;
    }
    let (fault, response) = respond(&mut shared.lock(), &request, bytes);
    if let Some(S3Fault::Late(delay)) = fault {
        sleep(delay).await;
    }
    response
}

/// Serves a request under one lock, so every request is atomic.
fn respond(
    state: &mut Inner,
    request: &S3Request,
    bytes: Bytes,
) -> (Option<S3Fault>, Response<Body>) {
    state.script.requests.push(request.clone());
    let fault = state.script.next(&request.call);
    if let Some(S3Fault::Status(status, code)) = fault {
        return (fault, reply::error(status, code));
    }
    let done = serve(state, request, bytes, fault.as_ref());
    let response = match (&fault, done) {
        (Some(S3Fault::Lost(status, code)), Ok(_)) => reply::error(*status, code),
        (_, Ok(response)) => response,
        (_, Err((status, code))) => reply::error(status, code),
    };
    (fault, response)
}

fn serve(
    state: &mut Inner,
    request: &S3Request,
    bytes: Bytes,
    fault: Option<&S3Fault>,
) -> Result<Response<Body>, Refusal> {
    if request.call == S3Call::Put && state.conditions == Conditions::Honoured {
        check(state, request)?;
    }
    let (bucket, name) = request.object();
    let page = state.page.unwrap_or(1000);
    let ignores_fields = state.ignores_fields;
    let bucket = state.bucket(bucket)?;
    match request.call {
        S3Call::Get | S3Call::Head => {
            let object = bucket.objects.get(name).ok_or((404, "NoSuchKey"))?;
            reply::object(object, request, fault)
        }
        S3Call::List => Ok(reply::list(bucket, request, page)),
        S3Call::Delete => {
            bucket.objects.remove(name);
            Ok(empty(204))
        }
        S3Call::Put => {
            let tag = bucket.put(name, request, bytes)?;
            if ignores_fields && let Some(stored) = bucket.objects.get_mut(name) {
                stored.headers.clear();
            }
            Ok(reply::written(&tag))
        }
        S3Call::Other => Err((501, "NotImplemented")),
    }
}

fn check(state: &mut Inner, request: &S3Request) -> Result<(), Refusal> {
    let (bucket, name) = request.object();
    let limit = state.r2_limit;
    let bucket = state.bucket(bucket)?;
    match limit {
        Some(limit) => bucket.check_as_r2(name, request, limit),
        None => bucket.check(name, request),
    }
}
