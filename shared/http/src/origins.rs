//! Answers to scripts of pages of other origins (WHATWG Fetch, section 3.2, "CORS protocol").

use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, ORIGIN, VARY,
    },
    request::Parts,
};

/// Methods of all routes.
pub(crate) const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// Origins whose scripts may read the answers.
#[derive(Debug, Clone, Default)]
pub enum Origins {
    /// All, because all clients may read: a mirror without users.
    #[default]
    Any,
    /// Only these. None adds no fields: a front of the mirror decides.
    Only(Vec<HeaderValue>),
}

impl Origins {
    /// Returns the origins of a mirror: with users those that are named, else all.
    pub fn of_mirror(has_users: bool, named: &[String]) -> Self {
        if !has_users {
            return Self::Any;
        }
        Self::Only(named.iter().filter_map(|origin| origin.parse().ok()).collect())
    }

    /// Adds the fields by which a browser gives the answer to a script of another origin.
    pub(crate) fn allow(&self, request: &Parts, response: &mut HeaderMap) {
        let origin = match self {
            Self::Any => Some(HeaderValue::from_static("*")),
            Self::Only(allowed) if allowed.is_empty() => return,
            Self::Only(allowed) => {
                response.append(VARY, HeaderValue::from_static("Origin"));
                let origin = request.headers.get(ORIGIN);
                origin.filter(|origin| allowed.contains(origin)).cloned()
            }
        };
        let Some(origin) = origin else { return };
        response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if request.method == Method::OPTIONS {
            response.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            // `*` does not stand for `Authorization`.
            let fields = HeaderValue::from_static("*, Authorization");
            response.insert(ACCESS_CONTROL_ALLOW_HEADERS, fields);
            response.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        } else {
            // A script that polls needs the tag.
            response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
        }
    }
}

/// Answers OPTIONS (RFC 9110, section 9.3.7), which a browser also asks before a GET with fields of its own.
pub(crate) fn options<B: Default>() -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(ALLOW, METHODS);
    response
}
