//! Settings of the function, read from environment variables, and the store and the router that
//! they describe. The README lists them.

use std::{str::FromStr, sync::Arc, time::Duration};

use anyhow::Context;
use api::{BaseUrl, HttpSettings, LargeBodies, Locate, Origins};
use config::{ConfigProblems, Variables};
use reader::{PublishedCatalogs, ReaderSettings};
use store::S3Location;
use store::s3::{S3Settings, S3Store, sdk_config_of_environment};
use trust::{PublicKey, Trust};

use crate::answer::{INLINE_MAX, Presigned};
use crate::function;

/// Default memory for caches, in MiB: ten for bodies, four for indexes, two for snapshots. With the
/// program's own 15 MB, and the three copies that the largest answer takes on its way out, this
/// stays below half of the smallest function (128 MB).
const CACHE_MIB: u64 = 16;

/// Maximum memory for caches, in MiB: the memory of the largest function.
const CACHE_MIB_MAX: u64 = 10_240;

/// Settings of the function.
#[derive(Debug, Clone)]
pub struct ReaderEnvironment {
    /// Bucket and prefix of the mirror.
    pub store: S3Location,
    /// URL of a place where all clients can fetch the objects, such as a CDN. `None`: presigned
    /// URLs.
    pub public_url: Option<BaseUrl>,
    /// Maximum size of a body that is answered inline, in bytes. Default and maximum:
    /// [`INLINE_MAX`].
    pub inline_max: u64,
    /// Memory for caches, time without asking S3 again, and keys of signatures.
    pub reading: ReaderSettings,
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
        let inline_max = variables.number("INLINE_MAX", 1..=INLINE_MAX);
        let freshness = variables.parsed("FRESHNESS", humantime::parse_duration);
        let reading = ReaderSettings {
            cache_bytes: variables
                .number("CACHE_MIB", 1..=CACHE_MIB_MAX)
                .unwrap_or(CACHE_MIB)
                << 20,
            // By default S3 is always asked: with two instances a client could otherwise get the
            // newer state first and then the older one, and the clock of an instance stands still
            // while it is frozen, so the real time has no bound. To ask costs one S3 round trip and
            // no body.
            freshness: freshness.unwrap_or_default(),
            trust: variables
                .parsed("VERIFY_KEYS", PublicKey::from_text)
                .map(Trust::new),
            offload: api::offload,
            ..ReaderSettings::default()
        };
        variables.finish()?;
        Ok(Self {
            store: store.expect("a missing store was reported as a problem"),
            public_url,
            inline_max: inline_max.unwrap_or(INLINE_MAX),
            reading,
        })
    }

    /// Answers events until the service ends the process.
    ///
    /// # Errors
    /// Fails if the S3 client cannot be set up, or if the connection to the service is lost.
    pub async fn serve(self) -> anyhow::Result<()> {
        // The time-outs stay together below the 10 s after which a CDN gives up: a client waits
        // while S3 is asked.
        let s3 = S3Settings {
            attempts: 3,
            connect_timeout: Duration::from_secs(1),
            attempt_timeout: Duration::from_secs(3),
            total_timeout: Duration::from_secs(8),
            stall_timeout: Duration::from_secs(5),
            ..S3Settings::of_environment()
        };
        let sdk = sdk_config_of_environment(&s3).context("cannot set up the S3 client")?;
        let store = S3Store::new(&sdk, self.store, &s3);
        let to: Arc<dyn Locate> = match self.public_url {
            Some(url) => Arc::new(url),
            None => Arc::new(Presigned(store.clone())),
        };
        let settings = HttpSettings {
            // The CDN adds the fields: its cache has one answer for all origins.
            origins: Origins::Only(Vec::new()),
            large: Some(LargeBodies {
                above: self.inline_max,
                max: self.inline_max,
                to,
            }),
            ..HttpSettings::default()
        };
        let catalogs = PublishedCatalogs::new(Arc::new(store), self.reading);
        let served = lambda_http::lambda_runtime::run(function(catalogs, settings)).await;
        served.map_err(anyhow::Error::from_boxed)
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
        assert_eq!(environment.store.to_string(), "s3://bucket/a/b");
        assert_eq!(
            (environment.public_url, environment.inline_max),
            (None, INLINE_MAX)
        );
        let reading = environment.reading;
        assert_eq!(
            (reading.cache_bytes, reading.freshness),
            (16 << 20, Duration::ZERO)
        );
        assert!(reading.trust.is_none());
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
            [environment.reading.cache_bytes, environment.inline_max],
            [64 << 20, INLINE_MAX]
        );
        assert_eq!(environment.reading.freshness, Duration::from_millis(1500));
    }

    #[test]
    fn read_allows_redirects_on_the_same_host() {
        let environment = read(&[("STORE", "s3://bucket"), ("PUBLIC_URL", "/")]).unwrap();
        assert_eq!(environment.public_url, Some("/".parse().unwrap()));
        assert!(read(&[("STORE", "s3://bucket"), ("PUBLIC_URL", "/mirror")]).is_err());
    }
}
