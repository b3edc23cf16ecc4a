//! Immutable objects under their keys. They are public to all who may use the mirror: an unavailable catalog hides its
//! pointer, not the bytes that it shares with others.

use model::{Encoding, Key, Kind, ObjectDigest, Sha256};

use super::{Answering, BodyType, DOCUMENT, Redirect, Route, RouteCall};
use crate::{error::ApiError, payload::Payload, respond::Representation, rfc9110::Tag};

const OBJECT: Route = Route {
    redirect: Redirect::Always,
    errors: &[404, 503],
    ..DOCUMENT
};

pub(super) const SNAPSHOT: Route = Route {
    path: "/snapshots/sha256/{hash}.json.zst",
    handler: |call| object(call, Kind::Snapshot),
    id: "getSnapshot",
    summary: "One published state: every package by hash and size, as stored",
    ..OBJECT
};

pub(super) const INDEX: Route = Route {
    path: "/indexes/sha256/{hash}.json.zst",
    handler: |call| object(call, Kind::Index),
    id: "getIndex",
    summary: "The position of each meta of a published state, as stored",
    ..OBJECT
};

pub(super) const FINDINGS: Route = Route {
    path: "/findings/sha256/{hash}.json.zst",
    handler: |call| object(call, Kind::Findings),
    id: "getFindings",
    summary: "The findings of the validation of a published state, as stored",
    ..OBJECT
};

pub(super) const SEARCH: Route = Route {
    path: "/search/sha256/{hash}.json.zst",
    handler: |call| object(call, Kind::Search),
    id: "getSearchDocument",
    summary: "The texts and fields of a published state that search and GraphQL use, as stored",
    ..OBJECT
};

pub(super) const GRAPH: Route = Route {
    path: "/graphs/sha256/{hash}.pb.zst",
    handler: |call| object(call, Kind::Graph),
    id: "getGraph",
    summary: "The packages, channels and bundles of a published state for OLM v0's registry API, as stored",
    body: BodyType::Document("application/protobuf"),
    ..OBJECT
};

pub(super) const ALL_ZSTD: Route = Route {
    path: "/all/sha256/{hash}.json.zst",
    handler: |call| object(call, Kind::All(Encoding::Zstd)),
    id: "getAllZstd",
    summary: "The whole catalog, stored as one zstd frame",
    body: BodyType::Lines,
    ..OBJECT
};

pub(super) const ALL_GZIP: Route = Route {
    path: "/all/sha256/{hash}.json.gz",
    handler: |call| object(call, Kind::All(Encoding::Gzip)),
    id: "getAllGzip",
    summary: "The whole catalog, stored as one gzip member",
    body: BodyType::Lines,
    ..OBJECT
};

pub(super) const ALL_IDENTITY: Route = Route {
    path: "/all/sha256/{hash}.json",
    handler: |call| object(call, Kind::All(Encoding::Identity)),
    id: "getAllIdentity",
    summary: "The whole catalog, stored as it is, where the store keeps it",
    body: BodyType::Lines,
    ..OBJECT
};

pub(super) const SHARD: Route = Route {
    path: "/packages/sha256/{hash}.json.zst",
    handler: |call| object(call, Kind::Package),
    id: "getShard",
    summary: "The metas of one package, stored as zstd",
    body: BodyType::Lines,
    ..OBJECT
};

pub(super) const BLOB: Route = Route {
    path: "/blobs/sha256/{hash}",
    handler: |call| object(call, Kind::Blob),
    id: "getBlob",
    summary: "A part of a catalog's container image by its digest",
    body: BodyType::Bytes,
    ..OBJECT
};

fn object(call: RouteCall<'_>, kind: Kind) -> Answering<'_> {
    Box::pin(async move {
        // Not decoded: a key has one path, and caches in front compare paths byte by byte.
        let sha256 = call.params.get("hash").unwrap_or_default().parse();
        let sha256: Sha256 = sha256.map_err(|_| ApiError::UnknownPath)?;
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
    })
}
