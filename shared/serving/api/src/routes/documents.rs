//! The documents and objects of the store with the bytes that are stored, the content hash, the
//! contract and the probes.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use model::{CachePolicy, Document, Key, Kind, ObjectDigest, ObjectKey, Sha256};
use reader::ReaderError;

use crate::call::RouteCall;
use crate::error::ApiError;
use crate::payload::Payload;
use crate::representation::Representation;
use crate::rfc9110::Tag;

/// Path of all immutable objects: `all/sha256/HASH.json.zst`, for example.
pub(super) const OBJECT: &str = "/{kind}/sha256/{object}";

pub(super) async fn current(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let document = state.document();
    let encoding = call.encoding_for(document.len() as u64)?;
    let tag = call.app.head(&state).document_tags[encoding as usize].clone();
    call.coded_document(document.clone(), tag, encoding).await
}

pub(super) async fn status(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let name = call.param("catalog");
    let catalog = name.parse().map_err(ReaderError::CatalogName)?;
    if call.app.catalogs.hides(&catalog).await? {
        return Err(ReaderError::UnknownCatalog(name.into_owned()).into());
    }
    let key = Key::Status(catalog);
    let bytes = call
        .app
        .catalogs
        .document(&key)
        .await?
        .ok_or(ApiError::UnknownObject)?;
    Ok(Representation::of(
        Payload::Bytes(bytes),
        key.cache_policy(),
    ))
}

pub(super) async fn names(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let names = call
        .app
        .catalogs
        .names()
        .await?
        .ok_or(ApiError::UnknownObject)?;
    Ok(Representation::document(names.to_bytes().into()))
}

pub(super) async fn content_hash(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let head = call.app.head(&state);
    let line = Representation::text(
        head.hash_line.clone(),
        head.hash_tag.clone(),
        CachePolicy::Pointer,
    );
    Ok(line.dated(&head))
}

/// Returns the key of a path; `None` if no object is served there. No client reads the lists of the
/// garbage collector.
pub(super) fn served_key(path: &str) -> Option<ObjectKey> {
    let key = Key::parse(path.strip_prefix('/')?)?;
    ObjectKey::of(&key).filter(|object| object.kind != Kind::Garbage)
}

pub(super) async fn object(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let ObjectKey { kind, sha256 } =
        served_key(call.request.uri.path()).ok_or(ApiError::UnknownPath)?;
    let size = call.app.catalogs.size(kind, sha256).await?;
    let size = size.ok_or(ApiError::UnknownObject)?;
    let object = ObjectDigest { sha256, size }.with_kind(kind);
    Ok(Representation::of(
        Payload::Object(object),
        object.key().cache_policy(),
    ))
}

pub(super) async fn health(_: RouteCall<'_>) -> Result<Representation, ApiError> {
    Ok(ok())
}

/// Any answer of the store will do: an empty one has no `catalogs.json` yet.
pub(super) async fn readiness(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    if !call.app.settings.ready.load(Ordering::Relaxed) {
        return Err(ApiError::NotReady);
    }
    let answer = call.app.catalogs.store().head(&Key::Catalogs).await;
    answer.map_err(ReaderError::Store)?;
    Ok(ok())
}

fn ok() -> Representation {
    let line = Bytes::from_static(b"ok\n");
    let tag = Tag::of_stored(Sha256::of(&line));
    Representation::text(line, tag, CachePolicy::NoStore)
}
