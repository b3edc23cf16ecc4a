use std::time::Duration;

use serde::Deserialize;

use super::Problems;

/// What is kept besides what is published, as configured. What is left out is for the one to say who removes the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    /// The place where it is configured, for problems.
    pub place: String,
    /// How many earlier publications of a catalog are kept.
    pub generations: Option<usize>,
    /// For how many days after it was replaced one is kept.
    pub days: Option<u64>,
    /// How old what nothing names must be to be removed.
    pub grace: Option<Duration>,
}

/// `retention` of `catalogs.yaml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Entry {
    generations: Option<usize>,
    days: Option<u64>,
    grace: Option<String>,
}

impl Entry {
    pub(crate) fn check(self, place: &str, problems: &mut Problems) -> Retention {
        let place = format!("{place}, retention");
        let grace = self.grace.and_then(|text| {
            let parsed = humantime::parse_duration(&text);
            parsed
                .map_err(|error| problems.add(&place, format!("{text:?} is no duration such as 24h: {error}")))
                .ok()
        });
        Retention {
            place,
            generations: self.generations,
            days: self.days,
            grace,
        }
    }
}
