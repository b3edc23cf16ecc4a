//! The mutable documents of the store, as they are stored, and the content hash.

use model::{CachePolicy, Key};
use reader::ReaderError;

use super::RouteCall;
use crate::{error::ApiError, payload::Payload, respond::Representation};

pub(super) async fn current(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    Ok(Representation {
        tag: call.app.head(&state).document_tag.clone(),
        payload: Payload::Bytes(state.document().clone()),
        ..Representation::empty_document(CachePolicy::Pointer)
    })
}

pub(super) async fn status(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let name = call.catalog()?.parse().map_err(ReaderError::CatalogName)?;
    document(call, &Key::Status(name)).await
}

pub(super) async fn names(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    document(call, &Key::Catalogs).await
}

async fn document(call: RouteCall<'_>, key: &Key) -> Result<Representation, ApiError> {
    let bytes = call.app.catalogs.document(key).await?;
    let bytes = bytes.ok_or(ApiError::UnknownObject)?;
    Ok(Representation::document(bytes, key.cache_policy()))
}

pub(super) async fn content_hash(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let head = call.app.head(&state);
    Ok(Representation {
        modified: Some(head.modified.clone()),
        ..Representation::text(head.hash_line.clone(), head.hash_tag.clone(), CachePolicy::Pointer)
    })
}
