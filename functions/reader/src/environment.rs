//! Settings of the function, read from environment variables. The README lists them.

use std::{str::FromStr, time::Duration};

use config::{ConfigProblems, Variables};
use http_api::BaseUrl;
use store::S3Location;
use trust::PublicKey;

use crate::answer::INLINE_MAX;

/// Default memory for caches, in MiB: ten for bodies, four for indexes, two for snapshots. With the program's own 15 MB, and the
/// three copies that the largest answer takes on its way out, this stays below half of the smallest function (128 MB).
const CACHE_MIB: u64 = 16;

/// Maximum memory for caches, in MiB: the memory of the largest function.
const CACHE_MIB_MAX: u64 = 10_240;

/// Settings of the function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderEnvironment {
    /// Bucket and prefix of the mirror.
    pub store: S3Location,
    /// URL of a place where all clients can fetch the objects, such as a CDN. `None`: presigned URLs.
    pub public_url: Option<BaseUrl>,
    /// Maximum memory for cached bodies, indexes and snapshots, in bytes. Default 16 MiB.
    pub cache_bytes: u64,
    /// Time for which a pointer is served without asking S3 again. Default zero: with two instances a client could otherwise get
    /// the newer state first and then the older one, and the clock of an instance stands still while it is frozen, so the real
    /// time has no bound. To ask costs one S3 round trip and no body.
    pub freshness: Duration,
    /// Maximum size of a body that is answered inline, in bytes. Default and maximum: [`INLINE_MAX`].
    pub inline_max: u64,
    /// Keys of which at least one has to have signed each pointer. Empty: no signature is required.
    pub verify_keys: Vec<PublicKey>,
}

impl ReaderEnvironment {
    /// Reads variables. An empty one counts as absent, as templates cannot leave one out.
    ///
    /// # Errors
    /// All problems at once, each with the name of its variable.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigProblems> {
        let variables = Variables::new(get);
        let store = variables.required("STORE", S3Location::from_str);
        let public_url = variables.parsed("PUBLIC_URL", BaseUrl::from_str);
        let cache_mib = variables.number("CACHE_MIB", 1..=CACHE_MIB_MAX);
        let freshness = variables.parsed("FRESHNESS", humantime::parse_duration);
        let inline_max = variables.number("INLINE_MAX", 1..=INLINE_MAX);
        let verify_keys = variables.parsed("VERIFY_KEYS", PublicKey::from_text);
        variables.finish()?;
        Ok(Self {
            store: store.expect("a missing store was reported as a problem"),
            public_url,
            cache_bytes: cache_mib.unwrap_or(CACHE_MIB) << 20,
            freshness: freshness.unwrap_or_default(),
            inline_max: inline_max.unwrap_or(INLINE_MAX),
            verify_keys: verify_keys.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<ReaderEnvironment, ConfigProblems> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        ReaderEnvironment::read(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn read_needs_only_a_store() {
        let environment = read(&[("STORE", "s3://bucket/a/b"), ("PUBLIC_URL", "")]).unwrap();
        let expected = ReaderEnvironment {
            store: "s3://bucket/a/b".parse().unwrap(),
            public_url: None,
            cache_bytes: 16 << 20,
            freshness: Duration::ZERO,
            inline_max: INLINE_MAX,
            verify_keys: Vec::new(),
        };
        assert_eq!(environment, expected);
    }

    #[test]
    fn read_takes_every_variable() {
        let largest = INLINE_MAX.to_string();
        let environment = read(&[
            ("STORE", "s3://bucket"),
            ("PUBLIC_URL", "https://cdn.example/mirror/"),
            ("CACHE_MIB", "64"),
            ("FRESHNESS", "1500ms"),
            ("INLINE_MAX", &largest),
        ]);
        let environment = environment.unwrap();
        assert_eq!(
            environment.public_url,
            Some("https://cdn.example/mirror".parse().unwrap())
        );
        assert_eq!(
            [environment.cache_bytes, environment.inline_max],
            [64 << 20, INLINE_MAX]
        );
        assert_eq!(environment.freshness, Duration::from_millis(1500));
    }

    #[test]
    fn read_allows_redirects_on_the_same_host() {
        let environment = read(&[("STORE", "s3://bucket"), ("PUBLIC_URL", "/")]).unwrap();
        assert_eq!(environment.public_url, Some("/".parse().unwrap()));
        assert!(read(&[("STORE", "s3://bucket"), ("PUBLIC_URL", "/mirror")]).is_err());
    }
}
