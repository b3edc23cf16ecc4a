//! The mutable documents of the store, as they are stored, and the content hash.

use model::{CachePolicy, Key};
use reader::ReaderError;

use super::{BodyType, DOCUMENT, Route, RouteCall};
use crate::{error::ApiError, payload::Payload, respond::Representation};

pub(super) const NAMES: Route = Route {
    path: "/catalogs.json",
    handler: |call| Box::pin(async move { document(call, &Key::Catalogs).await }),
    id: "getNames",
    summary: "The names of all catalogs, as stored",
    errors: &[404, 503],
    ..DOCUMENT
};

pub(super) const CURRENT: Route = Route {
    path: "/catalogs/{catalog}/current.json",
    handler: |call| Box::pin(current(call)),
    id: "getCurrent",
    summary: "The pointer to the published state, as stored",
    ..DOCUMENT
};

pub(super) const STATUS: Route = Route {
    path: "/catalogs/{catalog}/status.json",
    handler: |call| Box::pin(status(call)),
    id: "getStatus",
    summary: "The last poll and its outcome, as stored",
    ..DOCUMENT
};

pub(super) const CONTENT_HASH: Route = Route {
    path: "/catalogs/{catalog}/content-hash",
    handler: |call| Box::pin(content_hash(call)),
    id: "getContentHash",
    summary: "The sha256 of the uncompressed catalog, one line",
    body: BodyType::Text,
    dated: true,
    ..DOCUMENT
};

async fn current(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    Ok(Representation {
        tag: call.app.head(&state).document_tag.clone(),
        payload: Payload::Bytes(state.document().clone()),
        ..Representation::empty_document(CachePolicy::Pointer)
    })
}

async fn status(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let name = call.catalog()?.parse().map_err(ReaderError::CatalogName)?;
    document(call, &Key::Status(name)).await
}

async fn document(call: RouteCall<'_>, key: &Key) -> Result<Representation, ApiError> {
    let bytes = call.app.catalogs.document(key).await?;
    let bytes = bytes.ok_or(ApiError::UnknownObject)?;
    Ok(Representation::document(bytes, key.cache_policy()))
}

async fn content_hash(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let head = call.app.head(&state);
    Ok(Representation {
        modified: Some(head.modified.clone()),
        ..Representation::text(head.hash_line.clone(), head.hash_tag.clone(), CachePolicy::Pointer)
    })
}
