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
    use super::*;

    // The contract's tests ask for every route and for other paths.
    proptest::proptest! {
        #[test]
        fn find_never_panics(path in "/?(catalogs|packages|v2)?/?\\PC{0,20}/\\PC{0,20}") {
            let _ = find(&path);
        }
    }
}
