use http::StatusCode;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, HeaderBuilder, ObjectBuilder, Ref, RefOr, Required, ResponseBuilder, Responses,
    ResponsesBuilder, Type,
    path::{Parameter, ParameterBuilder, ParameterIn},
    request_body::{RequestBody, RequestBodyBuilder},
    schema::Object,
};

use olm::{
    BundleChange, BundleChanges, BundleSummary, Changes, ChannelChange, ChannelChanges, ChannelSummary,
    DeprecationChange, DeprecationChanges, DeprecationSummary, EntryChanges, FacetCount, Heads, OtherChange,
    PackageChange, PackageChanges, PackageSummary, SearchFacets, SearchField, SearchHit, SearchResults, TextChange,
};

use crate::{
    refusal::{Problem, RegistryErrorEntry, RegistryErrors, is_registry},
    routes::{
        AllSizes, BodyType, CatalogEntry, CatalogList, CatalogOrigin, PackageEntry, PackageList, Redirect,
        RepositoryList, Route, SearchAnswer, StoredPackage, TagList, is_probe,
    },
};

/// Returns the schemas that the answers of all routes refer to.
pub(super) fn components() -> ComponentsBuilder {
    ComponentsBuilder::new()
        .schema_from::<CatalogList>()
        .schema_from::<CatalogEntry>()
        .schema_from::<CatalogOrigin>()
        .schema_from::<AllSizes>()
        .schema_from::<PackageList>()
        .schema_from::<PackageEntry>()
        .schema_from::<StoredPackage>()
        .schema_from::<SearchAnswer>()
        .schema_from::<SearchResults>()
        .schema_from::<SearchHit>()
        .schema_from::<SearchField>()
        .schema_from::<SearchFacets>()
        .schema_from::<FacetCount>()
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
        .schema_from::<RegistryErrorEntry>()
}

/// Returns the parameters of a path, the names between braces.
pub(super) fn path_parameters(path: &str) -> Vec<Parameter> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let describe = |(name, _): (&str, &str)| match name {
        "catalog" => parameter(name, ParameterIn::Path, "The catalog's name, a DNS-1123 subdomain"),
        "package" => parameter(name, ParameterIn::Path, "The package's name"),
        "reference" => parameter(name, ParameterIn::Path, "A tag or a digest"),
        "digest" => parameter(name, ParameterIn::Path, "sha256: and 64 lower-case hex digits"),
        _ => parameter(
            name,
            ParameterIn::Path,
            "The sha256 of the stored bytes: 64 lower-case hex digits",
        ),
    };
    names.map(describe).collect()
}

/// Returns the query parameters of a route.
pub(super) fn query_parameters(route: &Route) -> Vec<Parameter> {
    let describe = |&(name, text): &(&str, &str)| parameter(name, ParameterIn::Query, text);
    route.query.iter().map(describe).collect()
}

/// Returns the request fields that change the answer.
pub(super) fn request_headers(route: &Route) -> Vec<Parameter> {
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
    headers.extend(DATED.into_iter().filter(|_| route.dated));
    headers.extend(Some(negotiated).filter(|_| route.negotiated));
    let describe = |(name, text)| parameter(name, ParameterIn::Header, text);
    headers.into_iter().map(describe).collect()
}

/// Returns the answers of a route; those to HEAD have no bodies.
pub(super) fn responses(route: &Route, bodies: bool) -> Responses {
    let mut responses = ResponsesBuilder::new().response("200", success(route, "All of it", bodies, true));
    responses = responses.response("304", success(route, "The client has it", false, false));
    if bodies {
        let part = success(route, "A part of it, or several as multipart/byteranges", true, true);
        responses = responses.response("206", part.header("Content-Range", text("Which part")));
    }
    let redirected = match route.redirect {
        Redirect::Never => false,
        Redirect::Always => true,
        Redirect::GetOnly => bodies,
    };
    if redirected {
        let redirect = ResponseBuilder::new().description("Too large to be sent from here; it is at its immutable key");
        responses = responses.response("307", redirect.header("Location", text("The URL of the same bytes")));
    }
    let always = if bodies { &[405, 412, 416][..] } else { &[405, 412] };
    // For credentials that are missing or wrong, and for too many checks at a time.
    let guarded = if is_probe(route.path) { &[][..] } else { &[401, 429] };
    for &status in route.errors.iter().chain(always).chain(guarded) {
        responses = responses.response(status.to_string(), problem(route, status, bodies));
    }
    responses.build()
}

/// Returns the content of a POST: an object with the parameters of the query.
pub(super) fn content_of_post(route: &Route) -> RequestBody {
    let properties = route.query.iter().fold(ObjectBuilder::new(), |object, (name, _)| {
        // Of GraphQL over HTTP; no other route takes content.
        let of = if *name == "variables" {
            Type::Object
        } else {
            Type::String
        };
        object.property(*name, self::object(of))
    });
    let schema: Object = properties.required("query").build();
    let content = ContentBuilder::new().schema(Some(RefOr::T(schema.into()))).build();
    RequestBodyBuilder::new()
        .content("application/json", content)
        .required(Some(Required::True))
        .build()
}

/// Returns the answers to a POST.
pub(super) fn responses_to_post(route: &Route) -> Responses {
    let whole = ResponseBuilder::new()
        .description("All of it")
        .header("Cache-Control", text("How long caches may keep it"));
    let mut responses = ResponsesBuilder::new().response("200", content(whole, route.body));
    for &status in route.errors.iter().chain(&[401, 405, 408, 413, 429]) {
        responses = responses.response(status.to_string(), problem(route, status, true));
    }
    responses.build()
}

/// Returns what all answers but errors have in common; `described` ones name the coding of their content.
fn success(route: &Route, description: &str, body: bool, described: bool) -> ResponseBuilder {
    let mut response = ResponseBuilder::new()
        .description(description)
        .header("ETag", text("Strong: the same tag, the same bytes"))
        .header("Cache-Control", text("How long caches may keep it"));
    if route.dated {
        response = response.header("Last-Modified", text("When the state was published"));
    }
    if route.negotiated {
        response = response.header("Vary", text("Accept-Encoding"));
    }
    if route.negotiated && described {
        response = response.header("Content-Encoding", text("zstd, gzip, or absent"));
    }
    if body { content(response, route.body) } else { response }
}

fn content(response: ResponseBuilder, body: BodyType) -> ResponseBuilder {
    match body {
        BodyType::Json(schema) => {
            let schema = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema)));
            response.content("application/json", schema.build())
        }
        BodyType::AnyJson => response.content("application/json", of_type(Type::Object)),
        BodyType::Lines => response.content("application/jsonl", of_type(Type::String)),
        BodyType::Text => response.content("text/plain", of_type(Type::String)),
        BodyType::Document(media_type) => response.content(media_type, of_type(Type::Object)),
        BodyType::Bytes => response.content("application/octet-stream", of_type(Type::String)),
    }
}

fn of_type(schema: Type) -> utoipa::openapi::Content {
    ContentBuilder::new().schema(Some(object(schema))).build()
}

fn problem(route: &Route, status: u16, body: bool) -> ResponseBuilder {
    let reason = StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    let mut response = ResponseBuilder::new().description(reason.unwrap_or_default());
    response = match status {
        401 => response.header(
            "WWW-Authenticate",
            text("How to say who asks: RFC 9110, section 11.6.1"),
        ),
        405 => response.header("Allow", text(route.methods.field())),
        416 => response.header("Content-Range", text("The length that there is")),
        429 | 503 => response.header("Retry-After", text("Seconds to wait")),
        _ => response,
    };
    let (media_type, schema) = match is_registry(route.path) {
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
