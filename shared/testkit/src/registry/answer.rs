//! Answers one request of the registry.

use axum::body::{Body, to_bytes};
use axum::extract::Request as Incoming;
use axum::http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, COOKIE, HOST,
};
use axum::http::header::{LOCATION, RANGE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, Response};
use bytes::Bytes;
use serde_json::json;
use tokio::time::sleep;

use crate::image::{digest, gzip};
use crate::registry::{App, Fault, Inner, Kind, Request, Shared, upload};
use crate::serving::{BEFORE_CUT, cut, empty, finish, status};

/// Handles a request: logs it, delays it, then fails by script or serves.
pub(crate) async fn answer(state: App, incoming: Incoming) -> Response<Body> {
    let shared = state.0;
    let Noted { request, method, body } = note(incoming).await;
    let kind = request.kind;
    let (fault, delay) = {
        let mut state = shared.lock();
        state.script.begin(kind);
        state.script.requests.push(request.clone());
        (state.script.next(kind), state.script.delay_of(kind))
    };
    sleep(delay).await;
    let mut response = respond(&shared, &request, &method, &body, fault.as_ref());
    if let Some(Fault::Header(name, value)) = &fault {
        let value = HeaderValue::from_str(value).expect("the script gives a header's value");
        response.headers_mut().insert(*name, value);
    }
    shared.lock().script.end(kind);
    let coding = shared.lock().coding;
    match coding {
        Some(coding) if method != Method::HEAD => coded(response, coding).await,
        _ => response,
    }
}

async fn coded(response: Response<Body>, coding: &'static str) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("the body is whole");
    let body = if coding == "gzip" { gzip(&body) } else { vec![0] };
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    Response::from_parts(parts, body.into())
}

/// A request with what its log entry leaves out.
struct Noted {
    request: Request,
    method: Method,
    body: Bytes,
}

async fn note(incoming: Incoming) -> Noted {
    let (parts, body) = incoming.into_parts();
    let body = to_bytes(body, 64 << 20).await.unwrap_or_default();
    let header = |name| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(ToOwned::to_owned)
    };
    let path = parts.uri.path().to_owned();
    let request = Request {
        kind: kind(&parts.method, &path),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        range: header(RANGE),
        authorization: header(AUTHORIZATION),
        cookie: header(COOKIE),
        content_type: header(CONTENT_TYPE),
        body: String::from_utf8_lossy(&body[..body.len().min(1 << 20)]).into_owned(),
        host: parts
            .uri
            .authority()
            .map(ToString::to_string)
            .or(header(HOST))
            .unwrap_or_default(),
        path,
    };
    Noted {
        request,
        method: parts.method,
        body,
    }
}

fn kind(method: &Method, path: &str) -> Kind {
    match path {
        "/token" => Kind::Token,
        path if path.contains("/blobs/") => Kind::Blob,
        path if path.contains("/manifests/") && method == Method::HEAD => Kind::Head,
        path if path.contains("/manifests/") => Kind::Manifest,
        _ => Kind::Other,
    }
}

fn respond(shared: &Shared, request: &Request, method: &Method, body: &Bytes, fault: Option<&Fault>) -> Response<Body> {
    let mut state = shared.lock();
    match fault {
        Some(Fault::Status(code, retry_after)) => {
            let after = retry_after
                .iter()
                .fold(status(*code), |builder, value| builder.header(RETRY_AFTER, value));
            return finish(after, Body::empty());
        }
        Some(Fault::Redirect(to)) => return finish(status(307).header(LOCATION, to), Body::empty()),
        Some(Fault::Body(body)) => return finish(status(200), Body::from(body.clone())),
        Some(Fault::Answer(code, headers, body)) => {
            let all = headers.iter();
            let response = all.fold(status(*code), |response, (name, value)| response.header(*name, value));
            return finish(response, Body::from(body.clone()));
        }
        Some(Fault::Cut(_) | Fault::Digest(_) | Fault::Header(..) | Fault::Pass) | None => {}
    }
    if request.kind == Kind::Token {
        return token(&mut state, request);
    }
    if let Some(challenge) = state.auth.refuse(request.authorization.as_deref(), &state.base) {
        let refused = status(state.challenge_status.unwrap_or(401));
        return finish(refused.header(WWW_AUTHENTICATE, challenge), Body::empty());
    }
    if let Some(answer) = upload::answer(&mut state, request, method, body) {
        return answer;
    }
    match request.kind {
        Kind::Head if state.has_no_head => empty(405),
        Kind::Head | Kind::Manifest => manifest(&state, request, method, fault),
        Kind::Blob => blob(&state, request, fault),
        Kind::Token | Kind::Other => empty(404),
    }
}

fn token(state: &mut Inner, request: &Request) -> Response<Body> {
    match state.auth.token(request.authorization.as_deref(), &request.body) {
        Some(token) => {
            let body = json!({"token": token, "expires_in": state.auth.lifetime.as_secs().max(1)});
            finish(status(200), Body::from(body.to_string()))
        }
        None => empty(401),
    }
}

fn manifest(state: &Inner, request: &Request, method: &Method, fault: Option<&Fault>) -> Response<Body> {
    let path = request.path.trim_start_matches("/v2/");
    let Some((repository, reference)) = path.split_once("/manifests/") else {
        return empty(404);
    };
    let Some((media_type, bytes)) = state.manifests.get(&(repository.to_owned(), reference.to_owned())) else {
        return empty(404);
    };
    let promised = if let Some(Fault::Digest(lie)) = fault {
        lie.clone()
    } else {
        digest(bytes)
    };
    let mut response = status(200)
        .header(CONTENT_TYPE, media_type)
        .header(CONTENT_LENGTH, bytes.len());
    // An empty text stands for a registry that sends no digest.
    if !promised.is_empty() {
        response = response.header("docker-content-digest", promised);
    }
    let body = if method == Method::HEAD {
        Body::empty()
    } else {
        body(bytes.clone(), fault)
    };
    finish(response, body)
}

fn blob(state: &Inner, request: &Request, fault: Option<&Fault>) -> Response<Body> {
    let digest = request.path.rsplit('/').next().unwrap_or_default();
    let Some(bytes) = state.blobs.get(digest) else {
        return empty(404);
    };
    let from: Option<usize> = request
        .range
        .as_deref()
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    match from {
        Some(from) if !state.has_no_ranges && from < bytes.len() => {
            let rest = bytes.slice(from..);
            let range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
            finish(
                status(206)
                    .header(CONTENT_RANGE, range)
                    .header(CONTENT_LENGTH, rest.len()),
                body(rest, fault),
            )
        }
        _ => {
            let response = status(200)
                .header(ACCEPT_RANGES, "bytes")
                .header(CONTENT_LENGTH, bytes.len());
            finish(response, body(bytes.clone(), fault))
        }
    }
}

/// Returns the bytes, or some of them and a broken connection.
fn body(bytes: Bytes, fault: Option<&Fault>) -> Body {
    match fault {
        Some(&Fault::Cut(at)) => cut(&bytes, at, BEFORE_CUT),
        _ => Body::from(bytes),
    }
}
