//! Answers one request of the registry.

use std::collections::BTreeSet;

use axum::body::{Body, to_bytes};
use axum::extract::{Request as Incoming, State};
use axum::http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    COOKIE, HOST,
};
use axum::http::header::{LINK, LOCATION, RANGE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, Response, request::Parts};
use bytes::Bytes;
use serde_json::json;
use tokio::time::sleep;

use crate::image::{digest, gzip};
use crate::registry::{Fault, Inner, Kind, Request, Shared, named, upload};
use crate::serving::{BEFORE_CUT, cut, empty, finish, status};

/// Handles a request: logs it, delays it, then fails by script or serves.
pub(crate) async fn answer(State(shared): State<Shared>, incoming: Incoming) -> Response<Body> {
    let (parts, body) = incoming.into_parts();
    let body = to_bytes(body, 64 << 20).await.unwrap_or_default();
    let request = note(&parts, &body);
    let method = parts.method;
    let kind = request.kind;
    let (fault, delay) = {
        let mut state = shared.lock();
        let (now, most) = state.running.entry(kind).or_default();
        *now += 1;
        *most = (*most).max(*now);
        state.script.requests.push(request.clone());
        let delay = state.delays.get(&kind).copied().unwrap_or_default();
        let scripted = state.script.next(&kind);
        let mut rules = state.rules.iter();
        let ruled = rules.find(|rule| rule.0 == method.as_str() && request.path.contains(&rule.1));
        let ruled = ruled.map(|rule| rule.2.clone());
        (scripted.or(ruled), delay)
    };
    sleep(delay).await;
    let mut response = respond(&mut shared.lock(), &request, &method, &body, fault.as_ref());
    if let Some(Fault::Header(name, value)) = &fault {
        let value = HeaderValue::from_str(value).expect("the script gives a header's value");
        response.headers_mut().insert(*name, value);
    }
    let coding = {
        let mut state = shared.lock();
        state.running.entry(kind).or_default().0 -= 1;
        state.coding
    };
    match coding {
        Some(coding) if method != Method::HEAD => coded(response, coding).await,
        _ => response,
    }
}

async fn coded(response: Response<Body>, coding: &'static str) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let plain = to_bytes(body, usize::MAX).await.expect("the body is whole");
    let coded = if coding == "gzip" {
        gzip(&plain)
    } else {
        vec![0]
    };
    parts.headers.remove(CONTENT_LENGTH);
    let coding = HeaderValue::from_static(coding);
    parts.headers.insert(CONTENT_ENCODING, coding);
    Response::from_parts(parts, coded.into())
}

fn note(parts: &Parts, body: &Bytes) -> Request {
    let header = |name| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
    let authority = parts.uri.authority().map(ToString::to_string);
    let path = parts.uri.path().to_owned();
    Request {
        kind: kind(&parts.method, &path),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        range: header(RANGE),
        authorization: header(AUTHORIZATION),
        cookie: header(COOKIE),
        content_type: header(CONTENT_TYPE),
        body: String::from_utf8_lossy(&body[..body.len().min(1 << 20)]).into_owned(),
        host: authority.or(header(HOST)).unwrap_or_default(),
        path,
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

fn respond(
    state: &mut Inner,
    request: &Request,
    method: &Method,
    body: &Bytes,
    fault: Option<&Fault>,
) -> Response<Body> {
    match fault {
        Some(Fault::Status(code, retry_after)) => {
            let fields = retry_after
                .iter()
                .map(|value| (RETRY_AFTER.as_str(), value));
            return scripted(*code, fields, "");
        }
        Some(Fault::Redirect(to)) => return scripted(307, [(LOCATION.as_str(), to)], ""),
        Some(Fault::Body(body)) => return scripted(200, [], body),
        Some(Fault::Answer(code, fields, body)) => {
            return scripted(
                *code,
                fields.iter().map(|(name, value)| (*name, value)),
                body,
            );
        }
        Some(Fault::Cut(_) | Fault::Digest(_) | Fault::Header(..) | Fault::Pass) | None => {}
    }
    if request.kind == Kind::Token {
        return token(state, request);
    }
    if let Some(challenge) = state
        .auth
        .refuse(request.authorization.as_deref(), &state.base)
    {
        let refused = status(state.challenge_status.unwrap_or(401));
        return finish(refused.header(WWW_AUTHENTICATE, challenge), Body::empty());
    }
    if let Some(answer) = upload::answer(state, request, method, body) {
        return answer;
    }
    match request.kind {
        Kind::Head if state.has_no_head => empty(405),
        Kind::Head | Kind::Manifest => manifest(state, request, method, fault),
        Kind::Blob => blob(state, request, fault),
        Kind::Other => list(state, request),
        Kind::Token => empty(404),
    }
}

/// Answers the first question of a client, and lists of repositories and tags.
fn list(state: &Inner, request: &Request) -> Response<Body> {
    let names = || state.manifests.keys();
    let body = match request.path.as_str() {
        "/v2/" => json!({}),
        "/v2/_catalog" => {
            let repositories: BTreeSet<&String> =
                names().map(|(repository, _)| repository).collect();
            json!({"repositories": repositories})
        }
        path => {
            let path = path.trim_start_matches("/v2/");
            let Some(repository) = path.strip_suffix("/tags/list") else {
                return empty(404);
            };
            let own = names().filter(|(own, _)| own == repository);
            let mut versions = own.map(|(_, version)| version).peekable();
            if versions.peek().is_none() {
                return empty(404);
            }
            let tags: Vec<&String> = versions.filter(|version| !version.contains(':')).collect();
            // Pages of two, so that clients have to ask for all.
            let after = request
                .query
                .split('&')
                .find_map(|pair| pair.strip_prefix("last="));
            let rest = tags
                .into_iter()
                .filter(|tag| after.is_none_or(|after| tag.as_str() > after));
            let page: Vec<&String> = rest.take(2).collect();
            let mut response = status(200).header(CONTENT_TYPE, "application/json");
            if let [_, last] = page[..] {
                let next = format!("</v2/{repository}/tags/list?last={last}>; rel=\"next\"");
                response = response.header(LINK, next);
            }
            return finish(
                response,
                json!({"name": repository, "tags": page}).to_string(),
            );
        }
    };
    let response = status(200).header(CONTENT_TYPE, "application/json");
    finish(response, body.to_string())
}

fn scripted<'a>(
    code: u16,
    fields: impl IntoIterator<Item = (&'a str, &'a String)>,
    body: &str,
) -> Response<Body> {
    let fields = fields.into_iter();
    let response = fields.fold(status(code), |response, (name, value)| {
        response.header(name, value)
    });
    finish(response, body.to_owned())
}

fn token(state: &mut Inner, request: &Request) -> Response<Body> {
    match state
        .auth
        .token(request.authorization.as_deref(), &request.body)
    {
        Some(token) => {
            let body =
                json!({"token": token, "expires_in": state.auth.lifetime().as_secs().max(1)});
            finish(status(200), body.to_string())
        }
        None => empty(401),
    }
}

fn manifest(
    state: &Inner,
    request: &Request,
    method: &Method,
    fault: Option<&Fault>,
) -> Response<Body> {
    let path = request.path.trim_start_matches("/v2/");
    let Some((repository, reference)) = path.split_once("/manifests/") else {
        return empty(404);
    };
    let Some((media_type, bytes)) = state.manifests.get(&named(repository, reference)) else {
        return empty(404);
    };
    let promised = match fault {
        Some(Fault::Digest(lie)) => lie.clone(),
        _ => digest(bytes),
    };
    let mut response = status(200)
        .header(CONTENT_TYPE, media_type)
        .header(CONTENT_LENGTH, bytes.len());
    // An empty text stands for a registry that sends no digest.
    if !promised.is_empty() {
        response = response.header("docker-content-digest", promised);
    }
    let body = match *method {
        Method::HEAD => Body::empty(),
        _ => body(bytes.clone(), fault),
    };
    finish(response, body)
}

fn blob(state: &Inner, request: &Request, fault: Option<&Fault>) -> Response<Body> {
    let digest = request.path.rsplit('/').next().unwrap_or_default();
    let Some(bytes) = state.blobs.get(digest) else {
        return empty(404);
    };
    let range = request.range.as_deref().filter(|_| !state.has_no_ranges);
    let from: Option<usize> = range.and_then(|range| {
        range
            .strip_prefix("bytes=")?
            .strip_suffix('-')?
            .parse()
            .ok()
    });
    let (response, bytes) = match from.filter(|from| *from < bytes.len()) {
        Some(from) => {
            let range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
            (
                status(206).header(CONTENT_RANGE, range),
                bytes.slice(from..),
            )
        }
        None => (status(200).header(ACCEPT_RANGES, "bytes"), bytes.clone()),
    };
    finish(
        response.header(CONTENT_LENGTH, bytes.len()),
        body(bytes, fault),
    )
}

/// Returns the bytes, or some of them and a broken connection.
fn body(bytes: Bytes, fault: Option<&Fault>) -> Body {
    match fault {
        Some(&Fault::Cut(at)) => cut(&bytes, at, BEFORE_CUT),
        _ => Body::from(bytes),
    }
}
