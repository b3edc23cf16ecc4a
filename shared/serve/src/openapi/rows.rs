/// One path of the contract.
pub(super) struct Row {
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) body: Body,
    /// The coding follows `Accept-Encoding`.
    pub(super) negotiated: bool,
    /// It has a modification date.
    pub(super) dated: bool,
    /// It may be redirected to its immutable key.
    pub(super) redirected: bool,
    /// Its errors are a registry's.
    pub(super) registry: bool,
    /// The statuses of its errors beside 405, 412 and 416.
    pub(super) errors: &'static [u16],
}

/// What a body holds.
#[derive(Clone, Copy)]
pub(super) enum Body {
    /// A JSON document of this schema.
    Json(&'static str),
    /// A JSON document of the store.
    AnyJson,
    /// JSON lines.
    Lines,
    /// One line of text.
    Text,
    /// A JSON document of this media type.
    Document(&'static str),
    /// Bytes.
    Bytes,
}

const DOCUMENT: Row = Row {
    path: "",
    id: "",
    summary: "",
    body: Body::AnyJson,
    negotiated: false,
    dated: false,
    redirected: false,
    registry: false,
    errors: &[400, 404, 503],
};

const LINES: Row = Row {
    body: Body::Lines,
    negotiated: true,
    dated: true,
    redirected: true,
    errors: &[400, 404, 406, 503],
    ..DOCUMENT
};

const IMMUTABLE: Row = Row {
    redirected: true,
    ..DOCUMENT
};

const REGISTRY: Row = Row {
    registry: true,
    ..DOCUMENT
};

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "/catalogs",
        id: "listCatalogs",
        summary: "The catalogs that are served and what is published of them",
        body: Body::Json("CatalogList"),
        errors: &[503],
        ..DOCUMENT
    },
    Row {
        path: "/catalogs.json",
        id: "getNames",
        summary: "The names of all catalogs, as stored",
        errors: &[404, 503],
        ..DOCUMENT
    },
    Row {
        path: "/catalogs/{catalog}/current.json",
        id: "getCurrent",
        summary: "The pointer to what is published, as stored",
        ..DOCUMENT
    },
    Row {
        path: "/catalogs/{catalog}/status.json",
        id: "getStatus",
        summary: "The last poll and how it ended, as stored",
        ..DOCUMENT
    },
    Row {
        path: "/catalogs/{catalog}/content-hash",
        id: "getContentHash",
        summary: "The sha256 of the uncompressed catalog, one line",
        body: Body::Text,
        dated: true,
        ..DOCUMENT
    },
    Row {
        path: "/catalogs/{catalog}/changes",
        id: "getChanges",
        summary: "What changed between an earlier state and the published one: packages, channels, heads, bundles",
        body: Body::Json("Changes"),
        dated: true,
        errors: &[400, 404, 406, 503],
        ..DOCUMENT
    },
    Row {
        path: "/catalogs/{catalog}/api/v1/all",
        id: "getAll",
        summary: "The whole catalog, as catalogd answers it",
        ..LINES
    },
    Row {
        path: "/catalogs/{catalog}/all.json",
        id: "getAllJson",
        summary: "The whole catalog",
        ..LINES
    },
    Row {
        path: "/catalogs/{catalog}/api/v1/metas",
        id: "getMetas",
        summary: "The metas that match all filters, in the order of the catalog, as catalogd answers them",
        ..LINES
    },
    Row {
        path: "/catalogs/{catalog}/packages",
        id: "listPackages",
        summary: "The packages with their hashes and sizes",
        body: Body::Json("PackageList"),
        dated: true,
        ..DOCUMENT
    },
    Row {
        path: "/catalogs/{catalog}/packages/{package}",
        id: "getPackage",
        summary: "The metas of one package with its olm.package",
        ..LINES
    },
    Row {
        path: "/catalogs/{catalog}/{contentHash}/snapshot.json",
        id: "getSnapshot",
        summary: "One published state: every package by hash and size, as stored",
        ..IMMUTABLE
    },
    Row {
        path: "/catalogs/{catalog}/{contentHash}/index.json.zst",
        id: "getIndex",
        summary: "Where each meta of a published state lies, as stored",
        ..IMMUTABLE
    },
    Row {
        path: "/catalogs/{catalog}/{contentHash}/all.json.zst",
        id: "getAllZstd",
        summary: "The whole catalog, stored as one zstd frame",
        body: Body::Lines,
        ..IMMUTABLE
    },
    Row {
        path: "/catalogs/{catalog}/{contentHash}/all.json.gz",
        id: "getAllGzip",
        summary: "The whole catalog, stored as one gzip member",
        body: Body::Lines,
        ..IMMUTABLE
    },
    Row {
        path: "/catalogs/{catalog}/{contentHash}/all.json",
        id: "getAllIdentity",
        summary: "The whole catalog, stored as it is, where the store keeps it",
        body: Body::Lines,
        ..IMMUTABLE
    },
    Row {
        path: "/packages/sha256/{hash}.json.zst",
        id: "getShard",
        summary: "The metas of one package by their hash, stored as zstd",
        body: Body::Lines,
        errors: &[404, 503],
        ..IMMUTABLE
    },
    Row {
        path: "/blobs/sha256/{blob}",
        id: "getBlob",
        summary: "A part of a catalog's container image by its digest",
        body: Body::Bytes,
        errors: &[404, 503],
        ..IMMUTABLE
    },
    Row {
        path: "/v2/",
        id: "getRegistry",
        summary: "That this is a registry: OCI distribution specification, as all below /v2/",
        errors: &[],
        ..REGISTRY
    },
    Row {
        path: "/v2/_catalog",
        id: "listRepositories",
        summary: "The catalogs, each a repository of its name",
        body: Body::Json("RepositoryList"),
        errors: &[400, 503],
        ..REGISTRY
    },
    Row {
        path: "/v2/{catalog}/tags/list",
        id: "listTags",
        summary: "latest, and the first 12 digits of each content hash that is kept",
        body: Body::Json("TagList"),
        ..REGISTRY
    },
    Row {
        path: "/v2/{catalog}/manifests/{reference}",
        id: "getManifest",
        summary: "The image index by tag, it or a manifest by digest",
        body: Body::Document(oci::media_type::INDEX),
        ..REGISTRY
    },
    Row {
        path: "/v2/{catalog}/blobs/{digest}",
        id: "getImageBlob",
        summary: "A part of the catalog's images",
        body: Body::Bytes,
        redirected: true,
        ..REGISTRY
    },
    Row {
        path: "/v2/{catalog}/referrers/{digest}",
        id: "listReferrers",
        summary: "Nothing: no artifact refers to an image here",
        body: Body::Document(oci::media_type::INDEX),
        ..REGISTRY
    },
    Row {
        path: "/healthz",
        id: "getHealth",
        summary: "Whether the process lives",
        body: Body::Text,
        errors: &[],
        ..DOCUMENT
    },
    Row {
        path: "/readyz",
        id: "getReadiness",
        summary: "Whether the store answers",
        body: Body::Text,
        errors: &[503],
        ..DOCUMENT
    },
    Row {
        path: "/openapi.json",
        id: "getContract",
        summary: "This document",
        errors: &[],
        ..DOCUMENT
    },
];
