//! The contract as an OpenAPI document, made from the table of routes.

mod parts;
mod security;

use std::sync::LazyLock;

use bytes::Bytes;
use utoipa::openapi::{
    HttpMethod, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathItem, Paths,
    path::{Operation, OperationBuilder, PathItemBuilder, PathsBuilder},
};

use self::{
    parts::{
        components, content_of_post, path_parameters, query_parameters, request_headers, responses, responses_to_post,
    },
    security::{optional, schemes},
};

use crate::{
    content::AllowedMethods,
    routes::{ROUTES, Route, is_probe},
};

/// Returns the document, which is made once.
pub(crate) fn document() -> Bytes {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| {
        let mut text = contract().to_pretty_json().expect("a document holds only plain fields");
        text.push('\n');
        text.into()
    });
    DOCUMENT.clone()
}

fn contract() -> OpenApi {
    let info = InfoBuilder::new()
        .title("catalog-mirror")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Mirrors of OLM file-based catalogs: whole, by package, and by catalogd's own API.",
        ))
        .license(Some(
            LicenseBuilder::new()
                .name("Apache-2.0")
                .identifier(Some("Apache-2.0"))
                .build(),
        ));
    let add = |paths: PathsBuilder, route: &Route| paths.path(route.path, item(route));
    let described = ROUTES.iter().filter(|route| !route.id.is_empty());
    OpenApiBuilder::new()
        .info(info)
        .paths(described.fold(Paths::builder(), add))
        .components(Some(schemes(components()).build()))
        .security(Some(optional()))
        .build()
}

fn item(route: &Route) -> PathItem {
    let mut item = PathItemBuilder::new()
        .operation(HttpMethod::Get, operation(route, "").build())
        .operation(HttpMethod::Head, operation(route, "Head").build());
    if route.methods == AllowedMethods::ReadAndPost {
        item = item.operation(HttpMethod::Post, post(route));
    }
    item.build()
}

fn operation(route: &Route, suffix: &str) -> OperationBuilder {
    described(route, suffix)
        .parameters(Some(query_parameters(route)))
        .parameters(Some(request_headers(route)))
        .responses(responses(route, suffix.is_empty()))
}

/// Returns the operation of a POST: its parameters are in its content, and its answer has no conditions and no ranges.
fn post(route: &Route) -> Operation {
    described(route, "Post")
        .request_body(Some(content_of_post(route)))
        .responses(responses_to_post(route))
        .build()
}

fn described(route: &Route, suffix: &str) -> OperationBuilder {
    // Probes never want credentials; all other routes follow the document as a whole.
    let securities = is_probe(route.path).then(Vec::new);
    OperationBuilder::new()
        .operation_id(Some(format!("{}{suffix}", route.id)))
        .summary(Some(route.summary))
        .parameters(Some(path_parameters(route.path)))
        .securities(securities)
}
