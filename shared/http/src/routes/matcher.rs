use std::sync::LazyLock;

use super::{OBJECT, ROUTES, Route, documents};

/// Maximum number of segments in the path of a route.
const SEGMENTS_MAX: usize = 6;

/// Maximum number of parameters in the path of a route.
const PARAMS_MAX: usize = 2;

/// A route that a path belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Match<'a> {
    pub(crate) route: &'static Route,
    /// Position of the route in [`ROUTES`].
    pub(crate) number: usize,
    pub(crate) params: Params<'a>,
}

/// Parameters of a path by name, percent-encoded as the client sent them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Params<'a>([(&'static str, &'a str); PARAMS_MAX]);

impl<'a> Params<'a> {
    /// Returns the catalog of the path as the client wrote it, for logs.
    pub(crate) fn catalog(&self) -> Option<&'a str> {
        self.get("catalog")
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// One segment of a route's path.
#[derive(Debug, Clone, Copy)]
enum RouteSegment {
    Literal(&'static str),
    /// `{name}`, which matches at least one character.
    Param(&'static str),
}

impl RouteSegment {
    fn parse(text: &'static str) -> Self {
        let name = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        name.map_or(Self::Literal(text), Self::Param)
    }
}

/// A route by its position in [`ROUTES`], with its path in segments.
type ParsedRoute = (usize, Vec<RouteSegment>);

/// The routes by number of segments, parsed once.
static BY_LENGTH: LazyLock<[Vec<ParsedRoute>; SEGMENTS_MAX + 1]> = LazyLock::new(|| {
    let mut routes: [Vec<_>; SEGMENTS_MAX + 1] = Default::default();
    for (number, route) in ROUTES.iter().enumerate() {
        let segments: Vec<RouteSegment> = route.path.split('/').skip(1).map(RouteSegment::parse).collect();
        routes[segments.len()].push((number, segments));
    }
    routes
});

/// Finds the route of a path.
pub(crate) fn find(path: &str) -> Option<Match<'_>> {
    let mut segments = [""; SEGMENTS_MAX];
    let mut length = 0;
    for segment in path.strip_prefix('/')?.split('/') {
        *segments.get_mut(length)? = segment;
        length += 1;
    }
    let segments = &segments[..length];
    BY_LENGTH[length].iter().find_map(|(number, route)| {
        let found = Match {
            route: &ROUTES[*number],
            number: *number,
            params: params(route, segments)?,
        };
        // Folders and extensions are those of keys.
        let is_served = found.route.path != OBJECT || documents::served_key(path).is_some();
        is_served.then_some(found)
    })
}

fn params<'a>(route: &[RouteSegment], segments: &[&'a str]) -> Option<Params<'a>> {
    let mut params = Params::default();
    let mut slots = params.0.iter_mut();
    for (expected, segment) in route.iter().zip(segments) {
        match expected {
            RouteSegment::Literal(text) if text == segment => {}
            RouteSegment::Literal(_) => return None,
            RouteSegment::Param(_) if segment.is_empty() => return None,
            RouteSegment::Param(name) => *slots.next()? = (name, segment),
        }
    }
    Some(params)
}

#[cfg(test)]
mod tests {
    use model::{Key, Kind, Sha256};

    use super::*;

    #[test]
    fn find_returns_each_route_for_its_own_path() {
        for (number, route) in ROUTES.iter().enumerate().filter(|(_, route)| route.path != OBJECT) {
            let found = find(route.path).unwrap_or_else(|| panic!("{} is not found", route.path));
            assert_eq!(found.number, number, "{}", route.path);
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
            (
                "/v2/a/blobs/uploads",
                "/v2/{catalog}/blobs/uploads",
                [("catalog", "a"), ("", "")],
            ),
        ] {
            let found = find(path).unwrap();
            assert_eq!((found.route.path, found.params.0), (route, expected));
        }
    }

    #[test]
    fn find_returns_the_route_of_objects_for_each_key_but_garbage() {
        for kind in Kind::ALL {
            let path = format!("/{}", Key::Object(kind, Sha256::of(b"")));
            let found = find(&path).map(|found| found.route.path);
            assert_eq!(found, (kind != Kind::Garbage).then_some(OBJECT), "{path}");
        }
    }

    #[test]
    fn find_refuses_other_paths() {
        for path in [
            "",
            "*",
            "/",
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
