//! Phases of support of operators: documents of openshift/enhancements,
//! `lifecycle-and-compatibility`.

use std::{collections::HashSet, fmt, ops::RangeInclusive, str::FromStr, time::UNIX_EPOCH};

use serde::Deserialize;

use crate::{Rule, comparable_version};

/// Schema of the documents.
pub const LIFECYCLES: &str = "io.openshift.operators.lifecycles.v1alpha1";

const SECONDS_PER_DAY: u64 = 86_400;

/// Day of the calendar, as the number of days since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(u64);

/// Text that is not a day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a day such as 2026-11-26")]
pub struct DayError(String);

impl Day {
    /// Returns the number of days since an earlier day.
    pub const fn days_after(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl FromStr for Day {
    type Err = DayError;

    fn from_str(text: &str) -> Result<Self, DayError> {
        // It refuses years before 1970.
        let time = humantime::parse_rfc3339(&format!("{text}T00:00:00Z"));
        time.map(Self::from).map_err(|_| DayError(text.to_owned()))
    }
}

impl From<std::time::SystemTime> for Day {
    fn from(time: std::time::SystemTime) -> Self {
        Self(
            time.duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs()
                / SECONDS_PER_DAY,
        )
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UNIX_EPOCH + std::time::Duration::from_secs(self.0 * SECONDS_PER_DAY);
        let text = humantime::format_rfc3339_seconds(time).to_string();
        f.write_str(text.split('T').next().unwrap_or_default())
    }
}

/// Versions of a lifecycle document.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Lifecycle {
    /// Minor versions of the package, in the order of the document.
    #[serde(default)]
    pub versions: Vec<LifecycleVersion>,
}

/// Support of one minor version.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleVersion {
    /// Major and minor version, such as 1.5.
    pub name: String,
    /// Phases of support, the earliest first.
    #[serde(default)]
    pub phases: Vec<LifecyclePhase>,
    /// Platforms for which the version is.
    #[serde(default)]
    pub platform_compatibility: Vec<LifecyclePlatform>,
}

/// Phase of the support of one version, from day to day.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecyclePhase {
    /// Name of the phase, such as `Full support`.
    pub name: String,
    /// First day, as `YYYY-MM-DD`.
    pub start_date: String,
    /// Last day, as `YYYY-MM-DD`. It belongs to the phase.
    pub end_date: String,
}

/// Platform and the versions of it on which an operator is supported.
#[derive(Debug, Clone, Deserialize)]
pub struct LifecyclePlatform {
    /// Name of the platform, such as `openshift`.
    pub name: String,
    /// Minor versions of the platform, such as `4.20`.
    #[serde(default)]
    pub versions: Vec<String>,
}

impl LifecyclePhase {
    /// Returns the days of the phase; `None` if a date is none.
    pub fn days(&self) -> Option<RangeInclusive<Day>> {
        Some(self.start_date.parse().ok()?..=self.end_date.parse().ok()?)
    }
}

impl Lifecycle {
    /// Returns the support of the minor version to which a version belongs. Of several entries the
    /// first counts.
    pub fn of(&self, version: &str) -> Option<&LifecycleVersion> {
        let version = comparable_version(version)?;
        let minor = format!("{}.{}", version.major, version.minor);
        self.versions.iter().find(|found| found.name == minor)
    }

    /// Returns each rule of the enhancement that the document breaks, with the version and the
    /// phase.
    pub(crate) fn faults(&self) -> Vec<(Rule, String)> {
        let mut faults = Vec::new();
        let mut names = HashSet::new();
        for version in &self.versions {
            let name = &version.name;
            let is_minor = name
                .split('.')
                .filter(|number| number.parse::<u64>().is_ok())
                .count()
                == 2;
            if !is_minor || name.split('.').count() != 2 {
                faults.push((
                    Rule::LifecycleInvalid,
                    format!("version {name:?} is not MAJOR.MINOR"),
                ));
            }
            if !names.insert(name) {
                faults.push((Rule::LifecycleDuplicate, format!("version {name:?}")));
            }
            let mut before: Option<Day> = None;
            for phase in &version.phases {
                let detail = || format!("version {name:?}, phase {:?}", phase.name);
                let Some((start, end)) = phase.days().map(RangeInclusive::into_inner) else {
                    faults.push((Rule::LifecycleDateInvalid, detail()));
                    before = None;
                    continue;
                };
                if end <= start {
                    faults.push((Rule::LifecycleDateInvalid, detail()));
                }
                match before {
                    Some(before) if start <= before => {
                        faults.push((Rule::LifecycleOverlap, detail()));
                    }
                    Some(before) if start.days_after(before) > 1 => {
                        faults.push((Rule::LifecycleGap, detail()));
                    }
                    _ => {}
                }
                before = Some(end);
            }
        }
        faults
    }
}
