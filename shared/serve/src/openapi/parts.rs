use http::StatusCode;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, HeaderBuilder, ObjectBuilder, Ref, RefOr, Required, ResponseBuilder, Responses,
    ResponsesBuilder, Type,
    path::{Parameter, ParameterBuilder, ParameterIn},
    schema::Object,
};

use operators::{
    BundleChange, BundleChanges, BundleSummary, Changes, ChannelChange, ChannelChanges, ChannelSummary,
    DeprecationChange, DeprecationChanges, DeprecationSummary, EntryChanges, Heads, OtherChange, PackageChange,
    PackageChanges, PackageSummary, TextChange,
};

use super::rows::{Body, Row};
use crate::{
    denial::answers_all,
    listing::{CatalogEntry, CatalogList, Origin, PackageEntry, PackageList, Sizes},
    problem::Problem,
    registry::{RegistryError, RegistryErrors, RepositoryList, TagList},
};

/// The schemas.
pub(super) fn components() -> ComponentsBuilder {
    ComponentsBuilder::new()
        .schema_from::<CatalogList>()
        .schema_from::<CatalogEntry>()
        .schema_from::<Origin>()
        .schema_from::<Sizes>()
        .schema_from::<PackageList>()
        .schema_from::<PackageEntry>()
        .schema_from::<Problem>()
        .schema_from::<Changes>()
        .schema_from::<PackageChanges>()
        .schema_from::<PackageSummary>()
        .schema_from::<PackageChange>()
        .schema_from::<ChannelChanges>()
        .schema_from::<ChannelSummary>()
        .schema_from::<ChannelChange>()
        .schema_from::<Heads>()
        .schema_from::<EntryChanges>()
        .schema_from::<BundleChanges>()
        .schema_from::<BundleSummary>()
        .schema_from::<BundleChange>()
        .schema_from::<DeprecationChanges>()
        .schema_from::<DeprecationSummary>()
        .schema_from::<DeprecationChange>()
        .schema_from::<OtherChange>()
        .schema_from::<TextChange>()
        .schema_from::<RepositoryList>()
        .schema_from::<TagList>()
        .schema_from::<RegistryErrors>()
        .schema_from::<RegistryError>()
}

/// The names between braces.
pub(super) fn path_parameters(path: &str) -> Vec<Parameter> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let describe = |(name, _): (&str, &str)| match name {
        "catalog" => parameter(name, ParameterIn::Path, "The catalog's name, a DNS-1123 subdomain"),
        "package" => parameter(name, ParameterIn::Path, "The package's name"),
        "contentHash" => parameter(name, ParameterIn::Path, "The content hash: 64 lower-case hex digits"),
        "reference" => parameter(name, ParameterIn::Path, "A tag or a digest"),
        "digest" => parameter(name, ParameterIn::Path, "sha256: and 64 lower-case hex digits"),
        "blob" => parameter(
            name,
            ParameterIn::Path,
            "The sha256 of the stored bytes: 64 lower-case hex digits",
        ),
        _ => parameter(
            name,
            ParameterIn::Path,
            "The sha256 of the uncompressed lines: 64 lower-case hex digits",
        ),
    };
    names.map(describe).collect()
}

/// Filters and pages.
pub(super) fn query_parameters(row: &Row) -> Vec<Parameter> {
    let filters: &[(&str, &str)] = match row.id {
        "getMetas" => &[
            ("schema", "Only metas of this schema"),
            (
                "package",
                "Only metas whose package field is this; the olm.package itself has none",
            ),
            ("name", "Only metas of this name"),
        ],
        "getChanges" => &[(
            "since",
            "Required: the content hash of the state that the client knows, as content-hash told it",
        )],
        "listRepositories" | "listTags" => &[
            ("n", "At most so many; the answer's Link leads to the next"),
            ("last", "Only those behind this one"),
        ],
        "listReferrers" => &[("artifactType", "Only artifacts of this type")],
        _ => &[],
    };
    let describe = |&(name, text): &(&str, &str)| parameter(name, ParameterIn::Query, text);
    filters.iter().map(describe).collect()
}

/// `Accept-Encoding` is said by the answer's `Vary`; as a parameter OpenAPI 3.1 leaves it to HTTP, like `Accept`.
pub(super) fn request_headers(row: &Row) -> Vec<Parameter> {
    const ALWAYS: [(&str, &str); 4] = [
        ("If-Match", "RFC 9110, section 13.1.1"),
        ("If-None-Match", "RFC 9110, section 13.1.2"),
        ("Range", "RFC 9110, section 14.2"),
        ("If-Range", "RFC 9110, section 13.1.5"),
    ];
    const DATED: [(&str, &str); 2] = [
        ("If-Modified-Since", "RFC 9110, section 13.1.3"),
        ("If-Unmodified-Since", "RFC 9110, section 13.1.4"),
    ];
    let negotiated = ("Accept-Encoding", "zstd, gzip or identity: RFC 9110, section 12.5.3");
    let mut headers = ALWAYS.to_vec();
    headers.extend(DATED.into_iter().filter(|_| row.dated));
    headers.extend(Some(negotiated).filter(|_| row.negotiated));
    let describe = |(name, text)| parameter(name, ParameterIn::Header, text);
    headers.into_iter().map(describe).collect()
}

/// What a row is answered with; to a HEAD without bodies.
pub(super) fn responses(row: &Row, bodies: bool) -> Responses {
    let mut responses = ResponsesBuilder::new().response("200", success(row, "All of it", bodies, true));
    responses = responses.response("304", success(row, "The client has it", false, false));
    if bodies {
        let part = success(row, "A part of it, or several as multipart/byteranges", true, true);
        responses = responses.response("206", part.header("Content-Range", text("Which part")));
    }
    // The HEAD of an image blob is answered from here.
    if row.redirected && (bodies || !row.registry) {
        let redirect = ResponseBuilder::new().description("Too large to be sent from here; it is at its immutable key");
        responses = responses.response("307", redirect.header("Location", text("The URL of the same bytes")));
    }
    let always = if bodies { &[405, 412, 416][..] } else { &[405, 412] };
    // To those whose credentials are missing, wrong, or too many at once.
    let guarded = if answers_all(row.path) { &[][..] } else { &[401, 429] };
    for &status in row.errors.iter().chain(always).chain(guarded) {
        responses = responses.response(status.to_string(), problem(row, status, bodies));
    }
    responses.build()
}

/// What all answers but errors have in common; `described` ones say what their content is.
fn success(row: &Row, description: &str, body: bool, described: bool) -> ResponseBuilder {
    let mut response = ResponseBuilder::new()
        .description(description)
        .header("ETag", text("Strong: the same tag, the same bytes"))
        .header("Cache-Control", text("How long caches may keep it"));
    if row.dated {
        response = response.header("Last-Modified", text("When the state was published"));
    }
    if row.negotiated {
        response = response.header("Vary", text("Accept-Encoding"));
    }
    if row.negotiated && described {
        response = response.header("Content-Encoding", text("zstd, gzip, or absent"));
    }
    if body { content(response, row.body) } else { response }
}

fn content(response: ResponseBuilder, body: Body) -> ResponseBuilder {
    match body {
        Body::Json(schema) => {
            let schema = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema)));
            response.content("application/json", schema.build())
        }
        Body::AnyJson => response.content("application/json", of_type(Type::Object)),
        Body::Lines => response.content("application/jsonl", of_type(Type::String)),
        Body::Text => response.content("text/plain", of_type(Type::String)),
        Body::Document(media_type) => response.content(media_type, of_type(Type::Object)),
        Body::Bytes => response.content("application/octet-stream", of_type(Type::String)),
    }
}

fn of_type(schema: Type) -> utoipa::openapi::Content {
    ContentBuilder::new().schema(Some(object(schema))).build()
}

fn problem(row: &Row, status: u16, body: bool) -> ResponseBuilder {
    let reason = StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    let mut response = ResponseBuilder::new().description(reason.unwrap_or_default());
    response = match status {
        401 => response.header(
            "WWW-Authenticate",
            text("How to say who asks: RFC 9110, section 11.6.1"),
        ),
        405 => response.header("Allow", text("GET, HEAD")),
        416 => response.header("Content-Range", text("The length that there is")),
        429 | 503 => response.header("Retry-After", text("Seconds to wait")),
        _ => response,
    };
    let (media_type, schema) = match row.registry {
        true => ("application/json", "RegistryErrors"),
        false => ("application/problem+json", "Problem"),
    };
    let schema = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(schema)))
        .build();
    if body {
        response.content(media_type, schema)
    } else {
        response
    }
}

fn parameter(name: &str, place: ParameterIn, description: &str) -> Parameter {
    let required = match place {
        ParameterIn::Path => Required::True,
        _ => Required::False,
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .description(Some(description))
        .schema(Some(object(Type::String)))
        .build()
}

fn text(description: &str) -> utoipa::openapi::Header {
    HeaderBuilder::new()
        .schema(Some(object(Type::String)))
        .description(Some(description))
        .build()
}

fn object(schema: Type) -> RefOr<utoipa::openapi::Schema> {
    let object: Object = ObjectBuilder::new().schema_type(schema).build();
    RefOr::T(object.into())
}
