//! The routes. Router, metrics' `route` label, 405 and the lists of tests iterate over [`ROUTES`];
//! `openapi.json` describes them.
//!
//! The table is our own: HEAD, conditions, ranges and errors are alike on all routes, and each is a
//! label of the metrics.

mod changes;
mod contract;
mod documents;
mod listing;
mod metas;
mod page;
mod registry;
mod versions;

use std::borrow::Cow;
use std::sync::LazyLock;

use http::request::Parts;
use matchit::Router;
use model::CatalogName;
use reader::ReaderError;

pub use self::contract::CATALOGS_LIST;
pub use self::page::page_files;
use crate::call::{Match, Route};
use crate::error::ApiError;
use crate::rfc9110::decode;

const HEALTH: &str = "/healthz";
const READINESS: &str = "/readyz";

/// Makes the table from the path and the handler of each route.
macro_rules! routes {
    ($($path:expr => $handler:path,)+) => {
        &[$(Route {
            path: $path,
            handler: |call| Box::pin($handler(call)),
        }),+]
    };
}

/// All routes. A path that matches several belongs to the one with fewer parameters.
pub(crate) const ROUTES: &[Route] = routes![
    "/" => page::page,
    "/page/{file}" => page::asset,
    "/catalogs" => listing::catalogs,
    "/catalogs.json" => documents::names,
    "/catalogs/{catalog}/current.json" => documents::current,
    "/catalogs/{catalog}/status.json" => documents::status,
    "/catalogs/{catalog}/content-hash" => documents::content_hash,
    "/catalogs/{catalog}/changes" => changes::changes,
    "/catalogs/{catalog}/api/v1/all" => metas::all,
    "/catalogs/{catalog}/all.json" => metas::all,
    "/catalogs/{catalog}/api/v1/metas" => metas::metas,
    "/catalogs/{catalog}/packages" => listing::packages,
    "/catalogs/{catalog}/search.json" => page::search_document,
    "/catalogs/{catalog}/search" => listing::search,
    "/catalogs/{catalog}/packages/{package}" => metas::package,
    "/catalogs/{catalog}/packages/{package}/icon" => versions::icon,
    "/catalogs/{catalog}/icons/{file}" => versions::icon,
    "/catalogs/{catalog}/packages/{package}/versions.json" => versions::package_versions,
    "/catalogs/{catalog}/versions/{file}" => versions::package_versions,
    "/catalogs/{catalog}/packages/{package}/channels/{channel}/versions.json" => versions::channel_versions,
    "/catalogs/{catalog}/versions/{package}/{file}" => versions::channel_versions,
    "/catalogs/{catalog}/days.json" => versions::days,
    documents::OBJECT => documents::object,
    "/v2/" => registry::base,
    "/v2" => registry::base,
    "/v2/_catalog" => registry::repositories,
    "/v2/{catalog}/tags/list" => registry::tags,
    "/v2/{catalog}/manifests/{reference}" => registry::manifest,
    "/v2/{catalog}/blobs/{digest}" => registry::image_blob,
    "/v2/{catalog}/referrers/{digest}" => registry::referrers,
    HEALTH => documents::health,
    READINESS => documents::readiness,
    "/openapi.json" => contract::contract,
];

/// The routes by path.
static PATHS: LazyLock<Router<Route>> = LazyLock::new(|| {
    let mut paths = Router::new();
    for route in ROUTES {
        paths
            .insert(route.path, *route)
            .expect("the table has each path once");
    }
    paths
});

/// Finds the route of a path.
pub(crate) fn find(path: &str) -> Option<Match<'_>> {
    let found = PATHS.at(path).ok()?;
    // The matcher takes empty parameters too.
    let has_all = found.params.iter().all(|(_, value)| !value.is_empty());
    // Folders and extensions are those of keys.
    let is_served =
        has_all && (found.value.path != documents::OBJECT || documents::served_key(path).is_some());
    is_served.then_some(found)
}

/// Returns the error of a request without a route.
pub(crate) fn unmatched(request: &Parts) -> ApiError {
    let path = request.uri.path();
    if let Some(rest) = path.strip_prefix("/v2/") {
        return registry::unmatched(&request.method, rest);
    }
    // A bad catalog name is distinguished from an unknown path, as catalogd's clients expect.
    let catalog = path
        .strip_prefix("/catalogs/")
        .and_then(|rest| rest.split_once('/'));
    match catalog.map(|(name, _)| decode(name).parse::<CatalogName>()) {
        Some(Err(error)) => ReaderError::CatalogName(error).into(),
        Some(Ok(_)) | None => ApiError::UnknownPath,
    }
}

/// Returns the catalog that a path is about.
pub fn catalog_of(path: &str) -> Option<Cow<'_, str>> {
    find(path)?.params.get("catalog").map(decode)
}

/// True for a path of catalogd's API, or of a whole catalog. OLM v1 reads it once for each image
/// that the status of a ClusterCatalog names, and keeps the answer.
pub fn is_kept(path: &str) -> bool {
    let kept = [
        "/catalogs/{catalog}/api/v1/all",
        "/catalogs/{catalog}/api/v1/metas",
        "/catalogs/{catalog}/all.json",
    ];
    find(path).is_some_and(|matched| kept.contains(&matched.value.path))
}

/// True if a path is answered without credentials. Probes of a supervisor have none, and the
/// answers tell nothing but that the process lives.
pub fn is_probe(path: &str) -> bool {
    path == HEALTH || path == READINESS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn description_has_the_paths_methods_and_statuses_of_the_table() {
        let contract: Value = serde_json::from_str(include_str!("../../openapi.json")).unwrap();
        let paths = contract["paths"].as_object().unwrap();
        let described: BTreeSet<&str> = paths.keys().map(String::as_str).collect();
        // One more spelling is not described.
        let expected = ROUTES.iter().filter(|route| route.path != "/v2/");
        assert_eq!(
            described,
            expected.clone().map(|route| route.path).collect()
        );
        for route in expected {
            let path = route.path;
            let responses = &paths[path]["get"]["responses"];
            for status in ["200", "206", "304", "405", "412", "416"] {
                assert!(responses.get(status).is_some(), "{path} {status}");
            }
            let methods: Vec<&String> = paths[path].as_object().unwrap().keys().collect();
            assert_eq!(methods, ["get"], "{path}");
        }
    }

    #[test]
    fn catalog_of_path_is_its_decoded_parameter() {
        for (path, catalog, is_whole) in [
            ("/catalogs/a/api/v1/all", Some("a"), true),
            ("/catalogs/%61/api/v1/metas", Some("a"), true),
            ("/catalogs/a/all.json", Some("a"), true),
            ("/catalogs/a/current.json", Some("a"), false),
            ("/v2/a/manifests/latest", Some("a"), false),
            ("/catalogs", None, false),
            ("/catalogs/a/api/v1/other", None, false),
        ] {
            assert_eq!(catalog_of(path).as_deref(), catalog, "{path}");
            assert_eq!(is_kept(path), is_whole, "{path}");
        }
        // A renamed route must not lose the check of a layer in front.
        let kept = ROUTES
            .iter()
            .filter(|route| is_kept(&route.path.replace("{catalog}", "a")));
        assert_eq!(kept.count(), 3);
    }

    // The contract's tests ask for every route and for other paths.
    proptest::proptest! {
        #[test]
        fn find_never_panics(path in "/?(catalogs|packages|v2)?/?\\PC{0,20}/\\PC{0,20}") {
            let _ = find(&path);
        }
    }
}
