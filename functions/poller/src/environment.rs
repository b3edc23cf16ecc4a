//! The environment of the function, as the README's table has it.

use std::{fmt::Display, str::FromStr, time::Duration};

use config::{Config, Problems, Reader};
use store_s3::Place;

use crate::webhooks;

/// Catalogs that do not say how often they are polled are polled at every schedule event.
const EVERY_EVENT: Duration = Duration::ZERO;

/// Below this much memory, in MB, one catalog is pulled at a time: two need some 150 MB beside the program itself.
const SIDE_BY_SIDE_MEMORY_MB: u64 = 512;

/// Registry requests in flight, if nobody says otherwise: what one registry takes from one client without complaint.
const RESOLVES: usize = 64;

/// What the environment says.
#[derive(Debug)]
pub struct Environment {
    /// Where the objects live.
    pub store: Place,
    /// What is mirrored.
    pub catalogs: CatalogsPlace,
    /// Secrets Manager's ids of the registries' credentials.
    pub pull_secrets: Vec<String>,
    /// Secrets Manager's ids of the private keys that sign what is published.
    pub signing_keys: Vec<String>,
    /// The URL of the queue for changed catalogs.
    pub queue: Option<String>,
    /// The name or ARN of the bus that hears of publications.
    pub event_bus: Option<String>,
    /// Whether a plain `all.json` is kept as well.
    pub identity: bool,
    /// Catalogs pulled at a time.
    pub side_by_side: usize,
    /// Registry requests in flight.
    pub resolves: usize,
    /// Which metrics are written.
    pub metrics: Level,
    /// The function's memory in MB; unknown outside of Lambda.
    pub memory_mb: Option<u64>,
}

/// Where `catalogs.yaml` is.
#[derive(Debug)]
pub enum CatalogsPlace {
    /// An object of S3, read anew for every event.
    Object {
        /// Its bucket.
        bucket: String,
        /// Its key.
        key: String,
    },
    /// The text of the variable itself, without problems.
    Text(String),
}

/// Which metrics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Of each catalog, and of all together.
    Catalog,
    /// Of all together.
    Total,
    /// None.
    Off,
}

impl Environment {
    /// Reads the variables.
    ///
    /// # Errors
    /// Everything that is wrong with them, including a `CATALOGS` that is the text itself.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, Problems> {
        let mut variables = Variables {
            get: &get,
            reader: reader(),
        };
        let store = variables.required("STORE", Place::from_str);
        let catalogs = variables.required("CATALOGS", catalogs);
        if let Some(CatalogsPlace::Text(text)) = &catalogs {
            variables.reader.text("CATALOGS", text);
            webhooks::check(&mut variables.reader);
        }
        let pull_secrets = list(&variables.text("PULL_SECRETS").unwrap_or_default());
        let signing_keys = list(&variables.text("SIGNING_KEYS").unwrap_or_default());
        let queue = variables.optional("QUEUE_URL", url);
        let event_bus = variables.text("EVENT_BUS");
        let identity = variables.optional("IDENTITY", truth);
        let side_by_side = variables.optional("SIDE_BY_SIDE", count);
        let resolves = variables.optional("RESOLVES", count);
        let metrics = variables.optional("METRICS", level);
        let memory_mb = variables.optional("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", u64::from_str);
        let small = memory_mb.is_some_and(|memory| memory < SIDE_BY_SIDE_MEMORY_MB);
        let environment = |store, catalogs| Self {
            store,
            catalogs,
            pull_secrets,
            signing_keys,
            queue,
            event_bus,
            identity: identity.unwrap_or(true),
            side_by_side: side_by_side.unwrap_or(if small { 1 } else { 2 }),
            resolves: resolves.unwrap_or(RESOLVES),
            metrics: metrics.unwrap_or(Level::Catalog),
            memory_mb,
        };
        variables.reader.finish()?;
        Ok(environment(
            store.expect("a missing store is a problem"),
            catalogs.expect("missing catalogs are a problem"),
        ))
    }

    /// Reads the text of the configuration. `place` names it in problems.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn config(place: &str, text: &str) -> Result<Config, Problems> {
        let mut reader = reader();
        reader.text(place, text);
        webhooks::check(&mut reader);
        reader.finish()
    }
}

fn reader() -> Reader {
    let mut reader = Reader::new(EVERY_EVENT);
    reader.registries_only();
    reader
}

/// The variables, with all that is wrong with them.
struct Variables<'a, G> {
    get: &'a G,
    reader: Reader,
}

impl<G: Fn(&str) -> Option<String>> Variables<'_, G> {
    /// An empty variable is as good as none: a template's parameter that was left out.
    fn text(&self, name: &str) -> Option<String> {
        (self.get)(name).filter(|text| !text.trim().is_empty())
    }

    fn optional<T, E: Display>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, E>) -> Option<T> {
        let text = self.text(name)?;
        let parsed = parse(text.trim());
        parsed.map_err(|error| self.reader.problem(name, error)).ok()
    }

    fn required<T, E: Display>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, E>) -> Option<T> {
        if self.text(name).is_none() {
            self.reader.problem(name, "is not set");
        }
        self.optional(name, parse)
    }
}

/// A key keeps every character after the bucket: S3 has keys that no [`Place`] has.
fn catalogs(text: &str) -> Result<CatalogsPlace, String> {
    let Some(rest) = text.strip_prefix("s3://") else {
        return Ok(CatalogsPlace::Text(text.to_owned()));
    };
    match rest.split_once('/') {
        Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => Ok(CatalogsPlace::Object {
            bucket: bucket.to_owned(),
            key: key.to_owned(),
        }),
        _ => Err(format!("{text:?} is not s3://BUCKET/KEY")),
    }
}

fn list(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

fn count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=1000).contains(count));
    count.ok_or_else(|| format!("{text:?} is not a number from 1 to 1000"))
}

fn truth(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("{text:?} is neither true nor false"))
}

fn url(text: &str) -> Result<String, String> {
    let is_url = text.starts_with("https://") || text.starts_with("http://");
    is_url
        .then(|| text.to_owned())
        .ok_or_else(|| format!("{text:?} is not the URL of a queue"))
}

fn level(text: &str) -> Result<Level, String> {
    match text {
        "catalog" => Ok(Level::Catalog),
        "total" => Ok(Level::Total),
        "off" => Ok(Level::Off),
        _ => Err(format!("{text:?} is none of catalog, total and off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOGS: &str = "catalogs: [{name: a, source: quay.io/a/b:latest}]";

    fn read(variables: &[(&str, &str)]) -> Result<Environment, String> {
        let get = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Environment::read(get).map_err(|problems| problems.to_string())
    }

    #[test]
    fn two_variables_are_enough() {
        let environment = read(&[("STORE", "s3://bucket/prefix"), ("CATALOGS", CATALOGS)]).unwrap();
        assert_eq!(environment.store.to_string(), "s3://bucket/prefix");
        assert!(environment.identity && environment.queue.is_none() && environment.pull_secrets.is_empty());
        assert_eq!((environment.side_by_side, environment.resolves), (2, 64));
    }

    #[test]
    fn a_small_function_pulls_one_catalog_at_a_time() {
        let with = |memory| {
            let memory = ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", memory);
            read(&[("STORE", "s3://bucket"), ("CATALOGS", CATALOGS), memory]).unwrap()
        };
        assert_eq!((with("511").side_by_side, with("512").side_by_side), (1, 2));
    }

    #[test]
    fn an_object_keeps_its_whole_key() {
        let environment = read(&[("STORE", "s3://bucket"), ("CATALOGS", "s3://conf/a b//c.yaml")]).unwrap();
        let CatalogsPlace::Object { bucket, key } = environment.catalogs else {
            panic!("{environment:?}");
        };
        assert_eq!((bucket.as_str(), key.as_str()), ("conf", "a b//c.yaml"));
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let catalogs = "catalogs: [{name: A, source: 'quay.io/x'}, {name: b, source: 'dir:/x'}]";
        let problems = read(&[
            ("STORE", "/var/lib"),
            ("CATALOGS", catalogs),
            ("QUEUE_URL", "my-queue"),
            ("IDENTITY", "yes"),
            ("SIDE_BY_SIDE", "0"),
            ("RESOLVES", "many"),
            ("METRICS", "all"),
        ])
        .unwrap_err();
        let parts = [
            "STORE: ",
            "catalog A: ",
            "catalog b: the source dir:/x",
            "QUEUE_URL",
            "IDENTITY",
        ];
        for part in parts.into_iter().chain(["SIDE_BY_SIDE", "RESOLVES", "METRICS"]) {
            assert!(problems.contains(part), "{part} is not in {problems}");
        }
        let problems = read(&[("STORE", " ")]).unwrap_err();
        assert!(
            problems.contains("STORE: is not set") && problems.contains("CATALOGS: is not set"),
            "{problems}"
        );
    }
}
