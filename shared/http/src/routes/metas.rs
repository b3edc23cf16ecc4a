//! Lines of a catalog: all of them, those of a query, those of one package.

use std::sync::Arc;

use http::HeaderMap;
use model::CachePolicy;

use super::{BodyType, DOCUMENT, Redirect, Route, RouteCall};
use crate::{
    error::ApiError,
    payload::Payload,
    pointer::ServedCatalog,
    respond::Representation,
    rfc9110::{Coding, Query, Tag, negotiate},
};

/// Size below which lines are sent uncompressed, in bytes: with its header, a compressed answer saves no packet.
const COMPRESSED_MIN: u64 = 1 << 10;

const LINES: Route = Route {
    body: BodyType::Lines,
    negotiated: true,
    dated: true,
    redirect: Redirect::Always,
    errors: &[400, 404, 406, 503],
    ..DOCUMENT
};

pub(super) const API_ALL: Route = Route {
    path: "/catalogs/{catalog}/api/v1/all",
    handler: |call| Box::pin(all(call)),
    id: "getAll",
    summary: "The whole catalog, as catalogd answers it",
    ..LINES
};

pub(super) const ALL: Route = Route {
    path: "/catalogs/{catalog}/all.json",
    handler: |call| Box::pin(all(call)),
    id: "getAllJson",
    summary: "The whole catalog",
    ..LINES
};

pub(super) const METAS: Route = Route {
    path: "/catalogs/{catalog}/api/v1/metas",
    handler: |call| Box::pin(metas(call)),
    id: "getMetas",
    summary: "The metas that match all filters, in the order of the catalog, as catalogd answers them",
    query: &[
        ("schema", "Only metas of this schema"),
        (
            "package",
            "Only metas whose package field is this; the olm.package itself has none",
        ),
        ("name", "Only metas of this name"),
    ],
    ..LINES
};

pub(super) const PACKAGE: Route = Route {
    path: "/catalogs/{catalog}/packages/{package}",
    handler: |call| Box::pin(package(call)),
    id: "getPackage",
    summary: "The metas of one package with its olm.package",
    ..LINES
};

async fn all(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    whole(&*call.app.served(&call.catalog()?).await?, call.headers)
}

async fn metas(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let name = call.catalog()?;
    let query = Query::parse(call.query)?;
    let served = call.app.served(&name).await?;
    if query.is_empty() {
        return whole(&served, call.headers);
    }
    let lines = call.app.select(Arc::clone(&served), &query).await?;
    let coding = coding_for(lines.length, call.headers)?;
    let tag = Tag::of_made(lines.identity, coding);
    Ok(lines_of(&served, coding, tag, Payload::Selected { lines, coding }))
}

async fn package(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let served = call.app.served(&call.catalog()?).await?;
    let snapshot = call.app.snapshot(&served).await?;
    let package = call.param("package");
    let shard = snapshot.package(&package);
    let shard = shard.ok_or_else(|| ApiError::UnknownPackage(package.clone().into_owned()))?;
    let coding = negotiate(call.headers, &Coding::ALL).ok_or(ApiError::NotAcceptable)?;
    let payload = Payload::shard(shard, coding);
    let tag = match payload.object() {
        // The tag of the object itself, so that the route and the immutable URL share it.
        Some(object) => Tag::of_stored(object.digest.sha256),
        None => Tag::of_made(shard.lines.sha256, coding),
    };
    Ok(lines_of(&served, coding, tag, payload))
}

fn whole(served: &ServedCatalog, headers: &HeaderMap) -> Result<Representation, ApiError> {
    let coding = negotiate(headers, &Coding::ALL).ok_or(ApiError::NotAcceptable)?;
    let tag = served.all_tag(coding).clone();
    Ok(lines_of(served, coding, tag, Payload::all(served, coding)))
}

fn lines_of(served: &ServedCatalog, coding: Coding, tag: Tag, payload: Payload) -> Representation {
    Representation {
        tag,
        modified: Some(served.modified.clone()),
        content_type: "application/jsonl",
        coding,
        negotiated: true,
        payload,
        ..Representation::empty_document(CachePolicy::Pointer)
    }
}

/// Returns identity for small answers that a client accepts so, else the preferred coding.
fn coding_for(length: u64, headers: &HeaderMap) -> Result<Coding, ApiError> {
    let plain = negotiate(headers, &[Coding::Identity]).filter(|_| length < COMPRESSED_MIN);
    plain
        .or_else(|| negotiate(headers, &Coding::ALL))
        .ok_or(ApiError::NotAcceptable)
}
