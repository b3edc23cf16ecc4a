use std::sync::atomic::Ordering;

use bytes::Bytes;
use model::{CachePolicy, Key, Sha256};
use reader::ReaderError;

use super::{BodyType, DOCUMENT, Route, RouteCall};
use crate::{error::ApiError, respond::Representation, rfc9110::Tag};

pub(super) const HEALTH: Route = Route {
    path: "/healthz",
    handler: |_| Box::pin(async { Ok(ok()) }),
    id: "getHealth",
    summary: "Answers as long as the process lives",
    body: BodyType::Text,
    errors: &[],
    ..DOCUMENT
};

pub(super) const READINESS: Route = Route {
    path: "/readyz",
    handler: |call| Box::pin(readiness(call)),
    id: "getReadiness",
    summary: "Answers once the catalogs were polled, as long as the store does",
    body: BodyType::Text,
    errors: &[503],
    ..DOCUMENT
};

pub(super) const CONTRACT: Route = Route {
    path: "/openapi.json",
    handler: |_| {
        Box::pin(async {
            Ok(Representation::document(
                crate::openapi::document(),
                CachePolicy::Pointer,
            ))
        })
    },
    id: "getContract",
    summary: "This document",
    errors: &[],
    ..DOCUMENT
};

/// Any answer of the store will do: an empty one has no `catalogs.json` yet.
async fn readiness(call: RouteCall<'_>) -> Result<Representation, ApiError> {
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
