use keep::GcSettings;
use serde::Deserialize;

use super::Problems;

/// `retention` of `catalogs.yaml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Entry {
    generations: Option<usize>,
    days: Option<u64>,
    grace: Option<String>,
}

impl Entry {
    /// What it says, and what is usual where it says nothing.
    pub(crate) fn check(self, place: &str, problems: &mut Problems) -> GcSettings {
        let place = format!("{place}, retention");
        let grace = self.grace.and_then(|text| {
            let parsed = humantime::parse_duration(&text);
            parsed
                .map_err(|error| problems.add(&place, format!("{text:?} is no duration such as 24h: {error}")))
                .ok()
        });
        let settings = GcSettings::of(self.generations, self.days, grace);
        if let Err(problem) = settings.check() {
            problems.add(&place, problem);
        }
        settings
    }
}
