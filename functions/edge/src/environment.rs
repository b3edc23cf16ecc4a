//! Settings of the Worker, read from its variables. The README lists them.

use std::{str::FromStr, time::Duration};

use config::{ConfigProblems, Variables};
use http_api::BaseUrl;
use trust::PublicKey;

/// Default memory for caches, in MiB. An isolate has 128 MB for the program, its requests and the caches.
const CACHE_MIB: u64 = 16;

/// Maximum memory for caches, in MiB: half of an isolate.
const CACHE_MIB_MAX: u64 = 64;

/// Default size of a stored object above which a client is redirected to it, in bytes.
const INLINE_MAX: u64 = 1 << 20;

/// Settings of the Worker.
#[derive(Debug)]
pub(crate) struct EdgeEnvironment {
    /// Prefix of every key in the bucket, with a slash at its end unless it is empty.
    pub(crate) prefix: String,
    /// URL of the bucket's own domain. `None`: all bodies go through the Worker.
    pub(crate) public_url: Option<BaseUrl>,
    /// Maximum memory for cached bodies, indexes and snapshots, in bytes.
    pub(crate) cache_bytes: u64,
    /// Time for which a pointer is served without asking the bucket again.
    pub(crate) freshness: Duration,
    /// Maximum size of a stored object that is sent through the Worker, in bytes.
    pub(crate) inline_max: u64,
    /// Keys of which at least one has to have signed each pointer. Empty: no signature is required.
    pub(crate) verify_keys: Vec<PublicKey>,
}

impl EdgeEnvironment {
    /// Reads variables. An empty one counts as absent.
    ///
    /// # Errors
    /// All problems at once, each with the name of its variable.
    pub(crate) fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigProblems> {
        let variables = Variables::new(get);
        let prefix = variables.text("PREFIX").unwrap_or_default();
        let public_url = variables.parsed("PUBLIC_URL", BaseUrl::from_str);
        let cache_mib = variables.number("CACHE_MIB", 1..=CACHE_MIB_MAX);
        let freshness = variables.parsed("FRESHNESS", humantime::parse_duration);
        let inline_max = variables.number("INLINE_MAX", 1..=u64::MAX);
        let verify_keys = variables.parsed("VERIFY_KEYS", PublicKey::from_text);
        variables.finish()?;
        Ok(Self {
            prefix: match prefix.trim_matches('/') {
                "" => String::new(),
                prefix => format!("{prefix}/"),
            },
            public_url,
            cache_bytes: cache_mib.unwrap_or(CACHE_MIB) << 20,
            freshness: freshness.unwrap_or_default(),
            inline_max: inline_max.unwrap_or(INLINE_MAX),
            verify_keys: verify_keys.unwrap_or_default(),
        })
    }
}
