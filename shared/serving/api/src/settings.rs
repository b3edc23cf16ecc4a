use std::error::Error;
use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, header, request::Parts};
use model::Key;

/// Settings of one deployment of the router.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Answer to requests for bodies that are too large to be sent inline. Default: they are
    /// streamed, as the local server does.
    pub large: Option<LargeBodies>,
    /// Set once `/readyz` may answer 200. Default: set. A server that polls sets it after its first
    /// polls, so that a load balancer sends no client to a catalog that is not there yet.
    pub ready: Arc<AtomicBool>,
    /// Other origins whose pages may read the answers. Default: all.
    pub origins: Origins,
    /// Title of the page. Default: that of the page itself.
    pub title: Option<String>,
    /// True if the answers become files of a static tree, whose description has no other paths.
    /// Default: false.
    pub is_static: bool,
    /// Returns the time of day. Default: the system's. A program for WebAssembly has to name
    /// another, because that one panics there.
    pub clock: fn() -> SystemTime,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            large: None,
            ready: Arc::new(AtomicBool::new(true)),
            origins: Origins::default(),
            title: None,
            is_static: false,
            clock: SystemTime::now,
        }
    }
}

/// Runs long work of the reader on threads for it, as [`reader::ReaderSettings::offload`]. To be
/// called in the runtime.
#[cfg(not(target_arch = "wasm32"))]
#[expect(
    clippy::disallowed_methods,
    reason = "other requests wait for the result too"
)]
pub fn offload(work: reader::Work) {
    drop(tokio::task::spawn_blocking(work));
}

/// Redirect of a GET (307) to the object with the same bytes: a Lambda function, which can send
/// only a few megabytes, or a Worker. HEAD has no body, and a presigned URL would refuse it.
#[derive(Debug, Clone)]
pub struct LargeBodies {
    /// Maximum size of a body that is sent inline although it is a stored object, in bytes.
    pub above: u64,
    /// Maximum size of any body, in bytes. A larger one that is no stored object is refused (406).
    pub max: u64,
    /// Finds the URL of an object.
    pub to: Arc<dyn Locate>,
}

/// Finds URLs under which all clients can fetch immutable objects.
#[async_trait]
pub trait Locate: Debug + Send + Sync {
    /// Returns the object's URL or path, as `Location` may have it (RFC 9110, section 10.2.2).
    /// Caches may repeat it for a minute.
    ///
    /// # Errors
    /// Any failure to make the URL. The client gets the answer to a failure of the store.
    async fn locate(&self, key: &Key) -> Result<String, Box<dyn Error + Send + Sync>>;
}

/// Objects below one URL, such as a CDN in front of the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(String);

impl FromStr for BaseUrl {
    type Err = &'static str;

    /// Parses the URL of the mirror's root, with or without a slash at its end. `/` is the host of
    /// the request: `Location` may be relative (RFC 9110, section 10.2.2). A CDN that serves the
    /// objects itself needs no name then, which its own stack could only give once it exists.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let host = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        let is_host = host.is_some_and(|host| {
            host.bytes().all(|byte| byte.is_ascii_graphic())
                && !host.is_empty()
                && !host.starts_with('/')
                && !host.contains(['?', '#', '@'])
        });
        (is_host || text == "/")
            .then(|| Self(text.trim_end_matches('/').to_owned()))
            .ok_or("is neither / nor an http:// or https:// URL of a host and a path")
    }
}

#[async_trait]
impl Locate for BaseUrl {
    async fn locate(&self, key: &Key) -> Result<String, Box<dyn Error + Send + Sync>> {
        Ok(format!("{}/{key}", self.0))
    }
}

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
        Self::Only(
            named
                .iter()
                .filter_map(|origin| origin.parse().ok())
                .collect(),
        )
    }

    /// Adds the fields by which a browser gives the answer to a script of another origin.
    pub(crate) fn allow(&self, request: &Parts, response: &mut HeaderMap) {
        let origin = match self {
            Self::Any => Some(HeaderValue::from_static("*")),
            Self::Only(allowed) if allowed.is_empty() => return,
            Self::Only(allowed) => {
                response.append(header::VARY, HeaderValue::from_static("Origin"));
                let origin = request.headers.get(header::ORIGIN);
                origin.filter(|origin| allowed.contains(origin)).cloned()
            }
        };
        let Some(origin) = origin else { return };
        response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if request.method == Method::OPTIONS {
            response.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            // `*` does not stand for `Authorization`.
            let fields = HeaderValue::from_static("*, Authorization");
            response.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, fields);
            response.insert(
                header::ACCESS_CONTROL_MAX_AGE,
                HeaderValue::from_static("86400"),
            );
        } else {
            // A script that polls needs the tag.
            response.insert(
                header::ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::from_static("*"),
            );
        }
    }
}
