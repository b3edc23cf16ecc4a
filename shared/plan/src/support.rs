//! Versions of OpenShift, and the support of a version on a day.

use std::{fmt, str::FromStr};

use olm::{Day, Lifecycle};
use semver::Version;
use serde::Serialize;

/// Minor version of OpenShift, such as 4.21.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenShiftMinor {
    major: u64,
    minor: u64,
}

/// Text that is not a minor version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version of OpenShift such as 4.21")]
pub struct OpenShiftMinorError(String);

impl FromStr for OpenShiftMinor {
    type Err = OpenShiftMinorError;

    fn from_str(text: &str) -> Result<Self, OpenShiftMinorError> {
        let mut numbers = text.trim_start_matches('v').split('.').map(str::parse);
        match (
            numbers.next(),
            numbers.next().unwrap_or(Ok(0)),
            numbers.next().unwrap_or(Ok(0)),
            numbers.next(),
        ) {
            // OLM v0 refuses a property with a patch version.
            (Some(Ok(major)), Ok(minor), Ok(0), None) => Ok(Self { major, minor }),
            _ => Err(OpenShiftMinorError(text.to_owned())),
        }
    }
}

impl fmt::Display for OpenShiftMinor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Reads the values of `olm.maxOpenShiftVersion` of a bundle, which are JSON, as OLM v0 does: there may be one.
pub(crate) fn max_openshift(values: &[String]) -> Result<Option<OpenShiftMinor>, String> {
    match values {
        [] => Ok(None),
        [value] => value
            .trim_matches('"')
            .parse()
            .map(Some)
            .map_err(|error: OpenShiftMinorError| error.to_string()),
        _ => Err("there are several".to_owned()),
    }
}

/// Support of a version on a day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Support {
    /// State on the day.
    pub state: SupportState,
    /// Name of the phase, if the version is in one.
    pub phase: Option<String>,
    /// Days that are left of the last phase, the day itself not counted.
    pub days_left: Option<u64>,
    /// True if the version is for the version of OpenShift. `None` without data.
    pub is_compatible: Option<bool>,
}

/// State of the support of a version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SupportState {
    /// The day is in a phase.
    Supported,
    /// The first phase starts later.
    NotYet,
    /// The last phase has ended.
    SelfSupport,
    /// The catalog has no document, several, or one that cannot be read.
    #[default]
    NoData,
}

impl Support {
    /// Finds the support of a version. Two documents of one package contradict each other, so they count as none.
    pub(crate) fn of(documents: &[Lifecycle], version: &Version, on: Day, cluster: Option<OpenShiftMinor>) -> Self {
        let [document] = documents else {
            return Self::default();
        };
        let name = format!("{}.{}", version.major, version.minor);
        let Some(found) = document.versions.iter().find(|version| version.name == name) else {
            return Self::default();
        };
        let platform = found
            .platform_compatibility
            .iter()
            .find(|platform| platform.name == "openshift");
        let cluster = cluster.map(|cluster| cluster.to_string());
        let is_compatible = platform
            .zip(cluster)
            .map(|(platform, cluster)| platform.versions.contains(&cluster));
        let phases = found.phases.iter().map(|phase| {
            Some((
                phase.start_date.parse().ok()?,
                phase.end_date.parse().ok()?,
                &phase.name,
            ))
        });
        let phases: Option<Vec<(Day, Day, &String)>> = phases.collect();
        let Some(phases) = phases.filter(|phases| !phases.is_empty()) else {
            return Self {
                is_compatible,
                ..Self::default()
            };
        };
        let last = phases.iter().map(|(_, end, _)| *end).max();
        let phase = phases.iter().find(|(start, end, _)| (*start..=*end).contains(&on));
        let state = match phase {
            Some(_) => SupportState::Supported,
            None if phases.iter().any(|(start, _, _)| *start > on) => SupportState::NotYet,
            None => SupportState::SelfSupport,
        };
        Self {
            state,
            phase: phase.map(|(_, _, name)| (*name).clone()),
            days_left: phase.and(last).map(|last| last.days_after(on)),
            is_compatible,
        }
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.state, self.days_left) {
            (SupportState::Supported, days) => write!(f, "{} days", days.unwrap_or_default()),
            (SupportState::NotYet, _) => f.write_str("not yet"),
            (SupportState::SelfSupport, _) => f.write_str("self-support"),
            (SupportState::NoData, _) => f.write_str("no data"),
        }
    }
}
