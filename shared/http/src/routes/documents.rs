//! The mutable documents of the store, as they are stored, and the content hash.

use model::{CachePolicy, Document, Key, Kind, ObjectDigest, ObjectKey};
use reader::ReaderError;

use crate::{error::ApiError, payload::Payload, respond::Representation, rfc9110::Tag, routes::RouteCall};

pub(super) async fn current(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    Ok(Representation {
        tag: call.app.head(&state).document_tag.clone(),
        payload: Payload::Bytes(state.document().clone()),
        ..Representation::empty_document(CachePolicy::Pointer)
    })
}

pub(super) async fn status(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let name = call.param("catalog");
    let catalog = name.parse().map_err(ReaderError::CatalogName)?;
    if call.app.catalogs.hides(&catalog).await? {
        return Err(ReaderError::UnknownCatalog(name.into_owned()).into());
    }
    let key = Key::Status(catalog);
    let bytes = call.app.catalogs.document(&key).await?.ok_or(ApiError::UnknownObject)?;
    Ok(Representation::document(bytes, key.cache_policy()))
}

pub(super) async fn names(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let names = call.app.catalogs.names().await?.ok_or(ApiError::UnknownObject)?;
    Ok(Representation::document(
        names.to_bytes().into(),
        Key::Catalogs.cache_policy(),
    ))
}

pub(super) async fn content_hash(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let head = call.app.head(&state);
    Ok(Representation {
        modified: Some(head.modified.clone()),
        ..Representation::text(head.hash_line.clone(), head.hash_tag.clone(), CachePolicy::Pointer)
    })
}

/// Returns the key of a path; `None` if no object is served there. No client reads the lists of the garbage collector.
pub(super) fn served_key(path: &str) -> Option<ObjectKey> {
    match Key::parse(path.strip_prefix('/')?)? {
        Key::Object(kind, sha256) if kind != Kind::Garbage => Some(ObjectKey { kind, sha256 }),
        _ => None,
    }
}

pub(super) async fn object(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let ObjectKey { kind, sha256 } = served_key(call.path()).ok_or(ApiError::UnknownPath)?;
    let size = call.app.catalogs.size(kind, sha256).await?;
    let size = size.ok_or(ApiError::UnknownObject)?;
    let key = Key::Object(kind, sha256);
    Ok(Representation {
        tag: Tag::of_stored(sha256),
        content_type: key.content_type(),
        encoding: kind.encoding(),
        payload: Payload::Object(ObjectDigest { sha256, size }.with_kind(kind)),
        ..Representation::empty_document(key.cache_policy())
    })
}
