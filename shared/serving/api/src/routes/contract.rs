//! The description of the routes, and what of it a static tree has.

use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::Value;

use super::documents::OBJECT;
use crate::call::RouteCall;
use crate::error::ApiError;
use crate::representation::Representation;

/// Description of the contract. A test compares it with the table of routes, and with every answer
/// of the other tests.
const CONTRACT: &[u8] = include_bytes!("../../openapi.json");

/// Name of `/catalogs` in a static tree, where that is a folder, and in buckets whose servers know
/// folders.
pub const CATALOGS_LIST: &str = "catalogs-list.json";

/// Paths that a static tree answers, without a query.
const STATIC_PATHS: &[&str] = &[
    "/",
    "/page/{file}",
    "/catalogs",
    "/catalogs.json",
    "/catalogs/{catalog}/current.json",
    "/catalogs/{catalog}/status.json",
    "/catalogs/{catalog}/content-hash",
    "/catalogs/{catalog}/changes",
    "/catalogs/{catalog}/api/v1/all",
    "/catalogs/{catalog}/all.json",
    "/catalogs/{catalog}/search.json",
    "/catalogs/{catalog}/days.json",
    "/catalogs/{catalog}/packages/{package}",
    "/catalogs/{catalog}/icons/{file}",
    "/catalogs/{catalog}/versions/{file}",
    "/catalogs/{catalog}/versions/{package}/{file}",
    OBJECT,
    "/v2",
    "/v2/{catalog}/tags/list",
    "/v2/{catalog}/manifests/{reference}",
    "/v2/{catalog}/blobs/{digest}",
    "/openapi.json",
];

/// Description of a static tree.
static STATIC_CONTRACT: LazyLock<Bytes> = LazyLock::new(|| {
    let mut contract: Value = serde_json::from_slice(CONTRACT).expect("a test parses it");
    let paths = contract["paths"].as_object_mut().into_iter();
    for paths in paths {
        paths.retain(|path, _| STATIC_PATHS.contains(&path.as_str()));
        if let Some(list) = paths.remove("/catalogs") {
            paths.insert(format!("/{CATALOGS_LIST}"), list);
        }
        // Among files it has the slash with which clients ask.
        if let Some(mark) = paths.remove("/v2") {
            paths.insert("/v2/".to_owned(), mark);
        }
        for parameters in paths
            .values_mut()
            .filter_map(|path| path["get"]["parameters"].as_array_mut())
        {
            parameters.retain(|parameter| parameter["in"] != "query");
        }
    }
    contract["info"]["description"] = Value::from(
        "A mirror of OLM file-based catalogs as files, which a web server or a bucket answers. Entity tags, conditions, ranges and \
         errors are those of the host.",
    );
    serde_json::to_vec(&contract)
        .expect("JSON is written")
        .into()
});

pub(super) async fn contract(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let document = if call.app.settings.is_static {
        STATIC_CONTRACT.clone()
    } else {
        Bytes::from_static(CONTRACT)
    };
    call.document(document).await
}

#[cfg(test)]
mod tests {
    use super::super::ROUTES;
    use super::*;

    #[test]
    fn description_of_a_static_tree_has_its_paths_without_queries() {
        let contract: Value = serde_json::from_slice(&STATIC_CONTRACT).unwrap();
        let paths = contract["paths"].as_object().unwrap();
        assert_eq!(paths.len(), STATIC_PATHS.len());
        let list = format!("/{CATALOGS_LIST}");
        for path in STATIC_PATHS {
            assert!(ROUTES.iter().any(|route| route.path == *path), "{path}");
            let shown = match *path {
                "/catalogs" => list.as_str(),
                "/v2" => "/v2/",
                other => other,
            };
            let get = &paths[shown]["get"];
            assert!(get["responses"]["200"].is_object(), "{path}");
            let parameters = get["parameters"].as_array().into_iter().flatten();
            for parameter in parameters {
                // A parameter of several paths is none of a query.
                let shared = parameter["$ref"].as_str().map(|shared| &shared[1..]);
                let parameter =
                    shared.map_or(parameter, |shared| contract.pointer(shared).unwrap());
                assert_ne!(parameter["in"], "query", "{path}");
            }
        }
    }
}
