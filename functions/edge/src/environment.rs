//! Settings of the Worker, read from its variables. The README lists them.

use std::str::FromStr;

use config::{ConfigProblems, Variables};
use http_api::BaseUrl;
use reader::ReaderSettings;
use trust::{PublicKey, Trust};

use crate::since_1970;

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
    /// Maximum size of a stored object that is sent through the Worker, in bytes.
    pub(crate) inline_max: u64,
    /// Memory for caches, time without asking the bucket again, and keys of signatures.
    pub(crate) reading: ReaderSettings,
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
        let inline_max = variables.number("INLINE_MAX", 1..=u64::MAX);
        let freshness = variables.parsed("FRESHNESS", humantime::parse_duration);
        let reading = ReaderSettings {
            cache_bytes: variables.number("CACHE_MIB", 1..=CACHE_MIB_MAX).unwrap_or(CACHE_MIB) << 20,
            freshness: freshness.unwrap_or_default(),
            trust: variables.parsed("VERIFY_KEYS", PublicKey::from_text).map(Trust::new),
            clock: since_1970,
            ..ReaderSettings::default()
        };
        variables.finish()?;
        Ok(Self {
            prefix: match prefix.trim_matches('/') {
                "" => String::new(),
                prefix => format!("{prefix}/"),
            },
            public_url,
            inline_max: inline_max.unwrap_or(INLINE_MAX),
            reading,
        })
    }
}
