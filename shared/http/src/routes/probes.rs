use std::sync::atomic::Ordering;

use bytes::Bytes;
use model::{CachePolicy, Key, Sha256};
use reader::ReaderError;

use super::RouteCall;
use crate::{error::ApiError, respond::Representation, rfc9110::Tag};

/// Description of the contract. A test compares it with the table of routes, and with every answer of the other tests.
const CONTRACT: &[u8] = include_bytes!("../../openapi.json");

pub(super) async fn health(_: RouteCall<'_>) -> Result<Representation, ApiError> {
    Ok(ok())
}

pub(super) async fn contract(_: RouteCall<'_>) -> Result<Representation, ApiError> {
    Ok(Representation::document(
        Bytes::from_static(CONTRACT),
        CachePolicy::Pointer,
    ))
}

/// Any answer of the store will do: an empty one has no `catalogs.json` yet.
pub(super) async fn readiness(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    if !call.app.settings.ready.load(Ordering::Relaxed) {
        return Err(ApiError::NotReady);
    }
    match call.app.catalogs.store().head(&Key::Catalogs).await {
        Ok(_) => Ok(ok()),
        Err(error) if error.is_not_found() => Ok(ok()),
        Err(error) => Err(ReaderError::Store(error).into()),
    }
}

fn ok() -> Representation {
    let line = Bytes::from_static(b"ok\n");
    let tag = Tag::of_stored(Sha256::of(&line));
    Representation::text(line, tag, CachePolicy::NoStore)
}
