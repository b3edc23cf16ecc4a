//! The environment of the function, as the README's table has it.

use std::{fmt::Display, str::FromStr, time::Duration};

use seal::PublicKey;
use store_s3::Place;

use crate::answer::INLINE_MAX;

/// Ten of it for bodies, four for indexes, two for snapshots: with the program's own 15 MB, and the three copies that
/// the largest answer takes on its way out, this stays below half of the smallest function (128 MB).
const CACHE_MIB: u64 = 16;

/// No cache is larger than the largest function.
const CACHE_MIB_MAX: u64 = 10_240;

/// What the environment says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Where the objects live.
    pub store: Place,
    /// The URL below which anyone can fetch them, such as a CDN's, without a slash at its end.
    pub public_url: Option<String>,
    /// Memory for cached bodies, indexes and snapshots, in bytes.
    pub cache_bytes: u64,
    /// How long a pointer is trusted without asking S3 again. Zero by default: two instances would otherwise show one
    /// client first the newer state and then the older one, and the clock of an instance stands still while it is
    /// frozen, so nobody could say how long it is. The question costs one S3 round trip and no body.
    pub freshness: Duration,
    /// The largest body in bytes that is answered inline.
    pub inline_max: u64,
    /// The keys of which one has to have signed what is served; none is asked for if there are none.
    pub verify_keys: Vec<PublicKey>,
}

/// Everything that is wrong with the environment.
#[derive(Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("the environment cannot be used: {}", .0.join("; "))]
pub struct Problems(Vec<String>);

impl Environment {
    /// Reads variables. An empty one counts as absent, as templates cannot leave one out.
    ///
    /// # Errors
    /// Everything that is wrong at once.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Problems> {
        let mut variables = Variables {
            variable,
            problems: Problems::default(),
        };
        let store = variables.required("STORE");
        let public_url = variables.with("PUBLIC_URL", base_url);
        let cache_mib = variables.number("CACHE_MIB", CACHE_MIB, 1..=CACHE_MIB_MAX);
        let freshness = variables.with("FRESHNESS", humantime::parse_duration);
        let inline_max = variables.number("INLINE_MAX", INLINE_MAX, 1..=INLINE_MAX);
        let verify_keys = variables.with("VERIFY_KEYS", PublicKey::from_text);
        match store {
            Some(store) if variables.problems.0.is_empty() => Ok(Self {
                store,
                public_url,
                cache_bytes: cache_mib << 20,
                freshness: freshness.unwrap_or_default(),
                inline_max,
                verify_keys: verify_keys.unwrap_or_default(),
            }),
            _ => Err(variables.problems),
        }
    }
}

struct Variables<F> {
    variable: F,
    problems: Problems,
}

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    fn problem(&mut self, name: &str, problem: impl Display) {
        self.problems.0.push(format!("{name}: {problem}"));
    }

    fn with<T, E: Display>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        let parsed = parse(&self.text(name)?);
        parsed.map_err(|problem| self.problem(name, problem)).ok()
    }

    fn required<T: FromStr<Err: Display>>(&mut self, name: &str) -> Option<T> {
        if self.text(name).is_none() {
            self.problem(name, "is not set");
        }
        self.with(name, str::parse)
    }

    fn number(&mut self, name: &str, default: u64, range: std::ops::RangeInclusive<u64>) -> u64 {
        let bounds = format!("is no number from {} to {}", range.start(), range.end());
        let parse = |text: &str| text.parse().ok().filter(|number| range.contains(number)).ok_or(bounds);
        self.with(name, parse).unwrap_or(default)
    }
}

/// `/` is the host that was asked: `Location` may be relative (RFC 9110, section 10.2.2). So a CDN that serves the
/// immutable keys itself needs no name here, which its own stack could only give once it exists.
fn base_url(text: &str) -> Result<String, &'static str> {
    if text == "/" {
        return Ok(String::new());
    }
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_plain = |rest: &str| {
        rest.bytes().all(|byte| byte.is_ascii_graphic()) && !rest.starts_with('/') && !rest.contains(['?', '#', '@'])
    };
    host.map(|host| host.trim_end_matches('/'))
        .filter(|host| !host.is_empty() && is_plain(host))
        .map(|_| text.trim_end_matches('/').to_owned())
        .ok_or("is neither / nor an http:// or https:// URL of a host and a path")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, Problems> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Environment::read(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_store_is_enough() {
        let environment = read(&[("STORE", "s3://bucket/a/b"), ("PUBLIC_URL", "")]).unwrap();
        let expected = Environment {
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
    fn everything_can_be_said() {
        let largest = INLINE_MAX.to_string();
        let environment = read(&[
            ("STORE", "s3://bucket"),
            ("PUBLIC_URL", "https://cdn.example/mirror/"),
            ("CACHE_MIB", "64"),
            ("FRESHNESS", "1500ms"),
            ("INLINE_MAX", &largest),
        ]);
        let environment = environment.unwrap();
        assert_eq!(environment.public_url.as_deref(), Some("https://cdn.example/mirror"));
        assert_eq!(
            (environment.cache_bytes, environment.inline_max),
            (64 << 20, INLINE_MAX)
        );
        assert_eq!(environment.freshness, Duration::from_millis(1500));
    }

    #[test]
    fn a_redirect_may_stay_on_the_host() {
        let environment = read(&[("STORE", "s3://bucket"), ("PUBLIC_URL", "/")]).unwrap();
        let base = serve::BaseUrl::new(environment.public_url.as_deref().unwrap());
        assert_eq!(base, serve::BaseUrl::new("/"));
        assert!(read(&[("STORE", "s3://bucket"), ("PUBLIC_URL", "/mirror")]).is_err());
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let too_large = (INLINE_MAX + 1).to_string();
        let problems = read(&[
            ("STORE", ""),
            ("PUBLIC_URL", "https://user@cdn.example"),
            ("CACHE_MIB", "-1"),
            ("FRESHNESS", "soon"),
            ("INLINE_MAX", &too_large),
        ]);
        let text = problems.unwrap_err().to_string();
        for name in [
            "STORE: is not set",
            "PUBLIC_URL",
            "CACHE_MIB",
            "FRESHNESS",
            "INLINE_MAX",
        ] {
            assert!(text.contains(name), "{name}: {text}");
        }
    }
}
