//! Settings of the function, read from its environment variables. The README has their table.

use std::{ops::RangeInclusive, str::FromStr, time::Duration};

use config::{Config, ConfigLoader, ConfigProblems};
use store::S3Location;
use strum::EnumString;

/// Default interval of a catalog: it is due at every schedule event.
const EVERY_EVENT: Duration = Duration::ZERO;

/// Memory in MB from which on two catalogs are pulled at a time: they need about 150 MB besides the
/// program itself.
const SIDE_BY_SIDE_MEMORY_MB: u64 = 512;

/// Default number of registry requests in flight, which public registries accept from one client
/// without throttling it.
const RESOLVES: usize = 64;

/// Allowed numbers of pulls and of requests at a time.
const COUNTS: RangeInclusive<usize> = 1..=1000;

/// Settings of the function.
#[derive(Debug)]
pub struct Environment {
    /// Bucket and prefix of the store.
    pub store: S3Location,
    /// Location of `catalogs.yaml`.
    pub catalogs: ConfigLocation,
    /// Names or ARNs of the secrets with the registries' credentials.
    pub pull_secrets: Vec<String>,
    /// Names or ARNs of the secrets with the private keys that sign publications.
    pub signing_keys: Vec<String>,
    /// URL of the SQS queue for changed catalogs.
    pub queue: Option<String>,
    /// Name or ARN of the event bus that receives publications.
    pub event_bus: Option<String>,
    /// True if `all.json` is stored uncompressed as well. Default: true.
    pub identity: bool,
    /// False refuses to publish catalogs that are pulled with credentials. Default: true.
    pub publish_private: bool,
    /// Maximum number of catalogs that are pulled at a time. Default: 1 below 512 MB of memory,
    /// else 2.
    pub side_by_side: usize,
    /// Maximum number of registry requests in flight. Default: 64.
    pub resolves: usize,
    /// Metrics to write. Default: those that alarms watch.
    pub metrics: MetricsLevel,
    /// Name of the function, which all its metrics have. Default, outside of Lambda: `poller`.
    pub function: String,
    /// Memory of the function, in MB; `None` outside of Lambda.
    pub memory_mb: Option<u64>,
}

/// Location of `catalogs.yaml`.
#[derive(Debug)]
pub enum ConfigLocation {
    /// An object of S3, checked for changes at every event.
    Object {
        /// Name of the bucket.
        bucket: String,
        /// Key of the object, with every character as given.
        key: String,
    },
    /// The text of the variable itself, which was checked at init.
    Text(String),
}

/// Detail of the metrics that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum MetricsLevel {
    /// Metrics that the alarms of `infra/aws` watch, for all catalogs together.
    Alarms,
    /// All, by catalog and for all catalogs together.
    Catalog,
    /// No metrics are written.
    Off,
}

impl Environment {
    /// Reads the variables through `get`.
    ///
    /// # Errors
    /// All problems of all variables, and those of the configuration if `CATALOGS` is its text.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigProblems> {
        let mut loader = loader();
        let variables = loader.variables(get);
        let store = variables.required("STORE", S3Location::from_str);
        let catalogs = variables.required("CATALOGS", catalogs);
        if let Some(ConfigLocation::Text(text)) = &catalogs {
            loader.text("CATALOGS", text);
        }
        let pull_secrets = list(&variables.text("PULL_SECRETS").unwrap_or_default());
        let signing_keys = list(&variables.text("SIGNING_KEYS").unwrap_or_default());
        let queue = variables.parsed("QUEUE_URL", url);
        let event_bus = variables.text("EVENT_BUS");
        let identity = variables.parsed("IDENTITY", bool::from_str);
        let publish_private = variables.parsed("PUBLISH_PRIVATE", bool::from_str);
        let side_by_side = variables.number("SIDE_BY_SIDE", COUNTS);
        let resolves = variables.number("RESOLVES", COUNTS);
        let metrics = variables.parsed("METRICS", level);
        let function = variables.text("AWS_LAMBDA_FUNCTION_NAME");
        let memory_mb = variables.parsed("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", u64::from_str);
        let small = memory_mb.is_some_and(|memory| memory < SIDE_BY_SIDE_MEMORY_MB);
        // Returns if anything is missing or wrong.
        loader.finish()?;
        Ok(Self {
            store: store.expect("a missing store was reported as a problem"),
            catalogs: catalogs.expect("missing catalogs were reported as a problem"),
            pull_secrets,
            signing_keys,
            queue,
            event_bus,
            identity: identity.unwrap_or(true),
            publish_private: publish_private.unwrap_or(true),
            side_by_side: side_by_side.unwrap_or(if small { 1 } else { 2 }),
            resolves: resolves.unwrap_or(RESOLVES),
            metrics: metrics.unwrap_or(MetricsLevel::Alarms),
            function: function.unwrap_or_else(|| "poller".to_owned()),
            memory_mb,
        })
    }

    /// Reads the text of `catalogs.yaml`. `place` names its location in the problems.
    ///
    /// # Errors
    /// All problems of the configuration.
    pub fn config(&self, place: &str, text: &str) -> Result<Config, ConfigProblems> {
        let mut loader = loader();
        if let Some(memory) = self.memory_mb {
            // The other half is for compressors, connections and the runtime.
            let half = memory.saturating_mul(1 << 20) / 2;
            loader.config.limits.memory_bytes = usize::try_from(half).unwrap_or(usize::MAX);
        }
        loader.text(place, text);
        loader.finish()
    }
}

fn loader() -> ConfigLoader {
    let mut loader = ConfigLoader::new(EVERY_EVENT);
    // A function has no folders to read an image from.
    loader.registries_only();
    loader
}

/// Reads the location of the configuration: `s3://BUCKET/KEY` or the text itself.
fn catalogs(text: &str) -> Result<ConfigLocation, String> {
    let Some(rest) = text.strip_prefix("s3://") else {
        return Ok(ConfigLocation::Text(text.to_owned()));
    };
    // Not an `S3Location`, which is a prefix: a key keeps every character after the bucket, also an
    // empty segment.
    match rest.split_once('/') {
        Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => {
            Ok(ConfigLocation::Object {
                bucket: bucket.to_owned(),
                key: key.to_owned(),
            })
        }
        _ => Err(format!("{text:?} is not s3://BUCKET/KEY")),
    }
}

fn list(text: &str) -> Vec<String> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

fn url(text: &str) -> Result<String, String> {
    if text.starts_with("https://") || text.starts_with("http://") {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not the URL of a queue"))
    }
}

fn level(text: &str) -> Result<MetricsLevel, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not alarms, catalog or off"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const CATALOGS: &str = "catalogs: [{name: a, source: quay.io/a/b:latest}]";

    fn read(variables: &[(&str, &str)]) -> Result<Environment, String> {
        let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
        let environment =
            Environment::read(|name| variables.get(name).map(|value| (*value).to_owned()));
        environment.map_err(|problems| problems.to_string())
    }

    #[test]
    fn read_with_two_variables_uses_defaults_that_fit_the_memory() {
        let required = [("STORE", "s3://bucket/prefix"), ("CATALOGS", CATALOGS)];
        let environment = read(&required).unwrap();
        assert_eq!(environment.store.to_string(), "s3://bucket/prefix");
        assert!(
            environment.identity
                && environment.queue.is_none()
                && environment.pull_secrets.is_empty()
        );
        assert_eq!((environment.side_by_side, environment.resolves), (2, 64));
        assert_eq!(environment.metrics, MetricsLevel::Alarms);
        for (memory, side_by_side) in [("511", 1), ("512", 2)] {
            let memory = ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", memory);
            let environment = read(&[required[0], required[1], memory]).unwrap();
            assert_eq!(environment.side_by_side, side_by_side, "{memory:?}");
        }
    }

    #[test]
    fn catalogs_object_keeps_its_whole_key() {
        let environment = read(&[
            ("STORE", "s3://bucket"),
            ("CATALOGS", "s3://conf/a b//c.yaml"),
        ])
        .unwrap();
        let ConfigLocation::Object { bucket, key } = environment.catalogs else {
            panic!("{environment:?}");
        };
        assert_eq!([bucket, key], ["conf", "a b//c.yaml"]);
    }

    #[test]
    fn read_reports_all_problems_at_once() {
        let catalogs = "catalogs: [{name: A, source: 'quay.io/x'}, {name: b, source: 'dir:/x'}]";
        let problems = read(&[
            ("STORE", "/var/lib"),
            ("CATALOGS", catalogs),
            ("QUEUE_URL", "my-queue"),
            ("IDENTITY", "yes"),
            ("PUBLISH_PRIVATE", "no"),
            ("SIDE_BY_SIDE", "0"),
            ("RESOLVES", "many"),
            ("METRICS", "all"),
        ])
        .unwrap_err();
        let variables =
            "QUEUE_URL IDENTITY PUBLISH_PRIVATE SIDE_BY_SIDE RESOLVES METRICS".split(' ');
        for part in variables.chain([
            "STORE: ",
            "catalog A, name: ",
            "catalog b: the source dir:/x",
        ]) {
            assert!(problems.contains(part), "{part} is not in {problems}");
        }
        let problems = read(&[("STORE", " ")]).unwrap_err();
        let is_told = |name: &str| problems.contains(&format!("{name}: is not set"));
        assert!(is_told("STORE") && is_told("CATALOGS"), "{problems}");
    }
}
