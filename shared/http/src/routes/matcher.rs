use std::sync::LazyLock;

use matchit::Router;

use super::{OBJECT, ROUTES, Route, documents};

/// A route that a path belongs to, with the parameters of the path by name, percent-encoded as the client sent them.
pub(crate) type Match<'a> = matchit::Match<'static, 'a, &'static Route>;

/// The routes by path.
static PATHS: LazyLock<Router<Route>> = LazyLock::new(|| {
    let mut paths = Router::new();
    for route in ROUTES {
        paths.insert(route.path, *route).expect("the table has each path once");
    }
    paths
});

/// Finds the route of a path.
pub(crate) fn find(path: &str) -> Option<Match<'_>> {
    let found = PATHS.at(path).ok()?;
    // The matcher takes empty parameters too.
    let has_all = found.params.iter().all(|(_, value)| !value.is_empty());
    // Folders and extensions are those of keys.
    let is_served = has_all && (found.value.path != OBJECT || documents::served_key(path).is_some());
    is_served.then_some(found)
}

#[cfg(test)]
mod tests {
    use model::{Key, Kind, Sha256};

    use super::*;

    #[test]
    fn find_returns_each_route_for_its_own_path() {
        for route in ROUTES.iter().filter(|route| route.path != OBJECT) {
            let found = find(route.path).unwrap_or_else(|| panic!("{} is not found", route.path));
            assert_eq!(found.value.path, route.path);
        }
    }

    #[test]
    fn find_returns_the_parameters_of_a_path() {
        for (path, route, expected) in [
            (
                "/catalogs/v4%2e20/packages/a%2Fb",
                "/catalogs/{catalog}/packages/{package}",
                [("catalog", "v4%2e20"), ("package", "a%2Fb")],
            ),
            (
                "/v2/blobs/manifests/tags",
                "/v2/{catalog}/manifests/{reference}",
                [("catalog", "blobs"), ("reference", "tags")],
            ),
        ] {
            let found = find(path).unwrap();
            assert_eq!(found.value.path, route);
            assert_eq!(found.params.iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn find_returns_the_route_of_objects_for_each_key_but_garbage() {
        for kind in Kind::ALL {
            let path = format!("/{}", Key::Object(kind, Sha256::of(b"")));
            let found = find(&path).map(|found| found.value.path);
            assert_eq!(found, (kind != Kind::Garbage).then_some(OBJECT), "{path}");
        }
    }

    #[test]
    fn find_refuses_other_paths() {
        for path in [
            "",
            "*",
            "/page/",
            "/catalogs/",
            "/catalogs/a",
            "/catalogs/a/",
            "/catalogs/a/notified.json",
            "/gc.json",
            "/garbage/sha256/e3b0.json.zst",
            "/catalogs//all.json",
            "/catalogs/a/packages/",
            "/catalogs/a/packages/b/c",
            "//healthz",
            "/healthz/",
            "/all/sha256/.json",
            "/all/sha256/e3b0.json",
            "/packages/sha256/e3b0.json",
            "/a/b/c/d/e/f/g/h",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn find_never_panics(path in "/?(catalogs|packages|v2)?/?\\PC{0,20}/\\PC{0,20}") {
            let _ = find(&path);
        }
    }
}
