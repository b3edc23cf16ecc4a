//! Takes pushed blobs and manifests, as a strict registry does: a manifest comes after what it
//! names.

use axum::body::Body;
use axum::http::header::LOCATION;
use axum::http::{Method, Response};
use bytes::Bytes;
use serde_json::Value;

use crate::image::digest;
use crate::registry::{Inner, Request, named};
use crate::serving::{empty, finish, status};

/// Answers a request that changes the registry; `None` for any other.
pub(super) fn answer(
    state: &mut Inner,
    request: &Request,
    method: &Method,
    body: &Bytes,
) -> Option<Response<Body>> {
    let path = request.path.trim_start_matches("/v2/");
    if let Some((repository, _)) = path.split_once("/blobs/uploads/") {
        return match *method {
            Method::POST => {
                state.begun += 1;
                let place = format!("/v2/{repository}/blobs/uploads/{}?state=x", state.begun);
                Some(finish(status(202).header(LOCATION, place), Body::empty()))
            }
            Method::PATCH => {
                let upload = state.uploads.entry(path.to_owned()).or_default();
                upload.extend_from_slice(body);
                let place = format!("/v2/{path}?state=x");
                Some(finish(status(202).header(LOCATION, place), Body::empty()))
            }
            Method::PUT => {
                let mut whole = state.uploads.remove(path).unwrap_or_default();
                whole.extend_from_slice(body);
                Some(blob(state, request, &whole.into()))
            }
            _ => None,
        };
    }
    let (repository, version) = path.split_once("/manifests/")?;
    if *method == Method::DELETE && state.deletes {
        return Some(delete(state, repository, version));
    }
    if *method == Method::DELETE {
        return Some(finish(status(405), "UNSUPPORTED"));
    }
    if *method != Method::PUT {
        return None;
    }
    let media_type = request.content_type.as_deref().unwrap_or_default();
    Some(manifest(state, repository, version, media_type, body))
}

fn blob(state: &mut Inner, request: &Request, body: &Bytes) -> Response<Body> {
    let found = digest(body);
    let promised = format!("digest={}", found.replace(':', "%3A"));
    let has = |pair: &str| request.query.split('&').any(|sent| sent == pair);
    if !has("state=x") || !has(&promised) {
        return finish(status(400), "DIGEST_INVALID");
    }
    state.blobs.insert(found, body.clone());
    empty(201)
}

/// Removes a manifest with all of its tags, as registries do.
fn delete(state: &mut Inner, repository: &str, version: &str) -> Response<Body> {
    let Some((_, bytes)) = state.manifests.get(&named(repository, version)).cloned() else {
        return empty(404);
    };
    state
        .manifests
        .retain(|(other, _), (_, found)| other != repository || *found != bytes);
    empty(202)
}

fn manifest(
    state: &mut Inner,
    repository: &str,
    version: &str,
    media_type: &str,
    body: &Bytes,
) -> Response<Body> {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let named_in = |field: &str| document[field].as_array().cloned().unwrap_or_default();
    let mut blobs = named_in("layers");
    if !document["config"].is_null() {
        blobs.push(document["config"].clone());
    }
    let mut has_all = document["mediaType"] == media_type;
    for blob in blobs {
        has_all &= state.blobs.contains_key(digest_of(&blob));
    }
    for manifest in named_in("manifests") {
        if state.takes_sparse {
            break;
        }
        let name = named(repository, digest_of(&manifest));
        has_all &= state.manifests.contains_key(&name);
    }
    if !has_all {
        return finish(status(400), "MANIFEST_BLOB_UNKNOWN");
    }
    for version in [version, &digest(body)] {
        let manifest = (media_type.to_owned(), body.clone());
        state.manifests.insert(named(repository, version), manifest);
    }
    empty(201)
}

fn digest_of(descriptor: &Value) -> &str {
    descriptor["digest"].as_str().unwrap_or_default()
}
