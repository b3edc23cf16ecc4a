//! Versions of OpenShift, and the support of a version on a day.

use std::{fmt, str::FromStr};

use olm::{Day, Lifecycle, comparable_version};
use semver::Version;
use serde::Serialize;

use crate::plan::PlanError;

/// Minor version of OpenShift, such as 4.21.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenShiftMinor {
    major: u64,
    minor: u64,
}

impl FromStr for OpenShiftMinor {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let zeros = ".0".repeat(2_usize.saturating_sub(text.matches('.').count()));
        let version = comparable_version(&format!("{text}{zeros}"));
        // OLM v0 refuses a property with a patch version.
        let minor = version.filter(|version| version.patch == 0 && version.pre.is_empty());
        let minor = minor.map(|Version { major, minor, .. }| Self { major, minor });
        minor.ok_or_else(|| {
            PlanError::Refused(format!(
                "{text:?} is not a version of OpenShift such as 4.21"
            ))
        })
    }
}

impl fmt::Display for OpenShiftMinor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
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
    /// Finds the support of a version. Two documents of one package contradict each other, so they
    /// count as none.
    pub(crate) fn of(
        documents: &[&String],
        version: &str,
        on: Day,
        cluster: Option<OpenShiftMinor>,
    ) -> Self {
        let name = comparable_version(version)
            .map(|version| format!("{}.{}", version.major, version.minor));
        let lifecycle: Lifecycle = match documents {
            [document] => serde_json::from_str(document).unwrap_or_default(),
            _ => Lifecycle::default(),
        };
        let mut versions = lifecycle.versions.iter();
        let Some(found) = versions.find(|version| Some(&version.name) == name.as_ref()) else {
            return Self::default();
        };
        let mut platforms = found.platform_compatibility.iter();
        let platform = platforms
            .find(|platform| platform.name == "openshift")
            .zip(cluster);
        let phases = found
            .phases
            .iter()
            .map(|phase| Some((phase.days()?, &phase.name)));
        // A phase that cannot be read leaves a gap, so none is believed.
        let phases = phases.collect::<Option<Vec<_>>>().unwrap_or_default();
        let last = phases.iter().map(|(days, _)| *days.end()).max();
        let phase = phases.iter().find(|(days, _)| days.contains(&on));
        let is_later = phases.iter().any(|(days, _)| *days.start() > on);
        Self {
            state: match last {
                None => SupportState::NoData,
                Some(_) if phase.is_some() => SupportState::Supported,
                Some(_) if is_later => SupportState::NotYet,
                Some(_) => SupportState::SelfSupport,
            },
            days_left: last
                .filter(|_| phase.is_some())
                .map(|last| last.days_after(on)),
            phase: phase.map(|(_, name)| (*name).clone()),
            is_compatible: platform
                .map(|(platform, cluster)| platform.versions.contains(&cluster.to_string())),
        }
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state {
            SupportState::Supported => write!(f, "{} days", self.days_left.unwrap_or_default()),
            SupportState::NotYet => f.write_str("not yet"),
            SupportState::SelfSupport => f.write_str("self-support"),
            SupportState::NoData => f.write_str("no data"),
        }
    }
}
