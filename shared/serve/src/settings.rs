use std::{error::Error, fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use layout::Key;
use seal::Trust;

/// What one deployment of the router decides.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The most memory for cached bodies, indexes and snapshots together. 64 MiB by default: hot shards and the
    /// precompressed catalogs of a dozen real mirrors fit, and it is a fraction of what one catalog takes decoded.
    pub cache_bytes: u64,
    /// How long a pointer is trusted without asking the store again. Zero by default: a folder answers in
    /// microseconds, and nobody ever reads an older state than the one published.
    pub freshness: Duration,
    /// What happens to bodies that are too large to be answered inline. Streamed by default.
    pub large: Large,
    /// What a client is told to wait after a failure of the store (RFC 9110, section 10.2.3). 5 s by default: a
    /// restarting store is back by then.
    pub retry_after: Duration,
    /// The keys of which one has to have signed what is served. By default none is asked for. A state that is not
    /// signed so is never served: the last one that was is served on.
    pub trust: Option<Trust>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            freshness: Duration::ZERO,
            large: Large::default(),
            retry_after: Duration::from_secs(5),
            trust: None,
        }
    }
}

/// What happens to bodies above a size.
#[derive(Debug, Clone, Default)]
pub enum Large {
    /// They are streamed like all others: the local server.
    #[default]
    Stream,
    /// They are redirected (307) to their immutable key: a Lambda function, which can answer only a few megabytes.
    /// The HEAD of an image blob is answered itself.
    Redirect {
        /// The largest body in bytes that is answered inline.
        above: u64,
        /// Where the others are.
        to: Arc<dyn Locate>,
    },
}

/// Where an immutable object can be fetched by anyone.
#[async_trait]
pub trait Locate: Debug + Send + Sync {
    /// The object's URL.
    ///
    /// # Errors
    /// Whatever keeps it from being known, which is answered as a failure of the store.
    async fn locate(&self, key: &Key) -> Result<Location, Box<dyn Error + Send + Sync>>;
}

/// A URL and how long it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// An absolute URL.
    pub url: String,
    /// For how long caches may repeat the redirect; zero for a URL that is meant for one client.
    pub max_age: Duration,
}

/// Objects that lie below one URL, such as a CDN in front of the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(String);

impl BaseUrl {
    /// Takes the URL of the mirror's root.
    pub fn new(url: &str) -> Self {
        Self(url.trim_end_matches('/').to_owned())
    }
}

#[async_trait]
impl Locate for BaseUrl {
    async fn locate(&self, key: &Key) -> Result<Location, Box<dyn Error + Send + Sync>> {
        Ok(Location {
            url: format!("{}/{key}", self.0),
            // As long as a pointer: the redirect says which state is published.
            max_age: Duration::from_secs(60),
        })
    }
}
