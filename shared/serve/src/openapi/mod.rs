//! The contract as an OpenAPI document: a table of rows, and what each kind of row has in common.

mod parts;
mod rows;
mod security;

use std::sync::LazyLock;

use bytes::Bytes;
use utoipa::openapi::{
    HttpMethod, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathItem, Paths,
    path::{Operation, OperationBuilder, PathItemBuilder, PathsBuilder},
};

use self::{
    parts::{components, path_parameters, query_parameters, request_headers, responses},
    rows::{ROWS, Row},
    security::{optional, schemes},
};

use crate::denial;

/// The document, made once.
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
    let add = |paths: PathsBuilder, row: &Row| paths.path(row.path, item(row));
    OpenApiBuilder::new()
        .info(info)
        .paths(ROWS.iter().fold(Paths::builder(), add))
        .components(Some(schemes(components()).build()))
        .security(Some(optional()))
        .build()
}

fn item(row: &Row) -> PathItem {
    PathItemBuilder::new()
        .operation(HttpMethod::Get, operation(row, ""))
        .operation(HttpMethod::Head, operation(row, "Head"))
        .build()
}

fn operation(row: &Row, suffix: &str) -> Operation {
    // Those that answer everybody say so; all others are as the whole contract says.
    let answers_all = denial::answers_all(row.path).then(Vec::new);
    OperationBuilder::new()
        .operation_id(Some(format!("{}{suffix}", row.id)))
        .summary(Some(row.summary))
        .parameters(Some(path_parameters(row.path)))
        .parameters(Some(query_parameters(row)))
        .parameters(Some(request_headers(row)))
        .responses(responses(row, suffix.is_empty()))
        .securities(answers_all)
        .build()
}
