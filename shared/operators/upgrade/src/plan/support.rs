//! Versions of OpenShift, and the support of a version on a day.

use std::collections::HashMap;
use std::{fmt, str::FromStr};

use olm::{Day, Lifecycle, LifecycleVersion, comparable_version};
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
        match comparable_version(&format!("{text}{zeros}")) {
            // OLM v0 refuses a property with a patch version.
            Some(version) if version.patch == 0 && version.pre.is_empty() => Ok(Self {
                major: version.major,
                minor: version.minor,
            }),
            _ => Err(PlanError::Refused(format!(
                "{text:?} is not a version of OpenShift such as 4.21"
            ))),
        }
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
    /// State on the day; unknown without a document about it.
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

/// Support of the versions of one package, each found once.
#[derive(Debug, Default)]
pub(crate) struct PackageSupport {
    versions: HashMap<String, LifecycleVersion>,
    /// Support by minor version.
    found: HashMap<String, Support>,
}

impl PackageSupport {
    /// Reads the documents of a package. Two of them contradict each other, so they count as none.
    pub(crate) fn new(documents: &[&String]) -> Self {
        let mut support = Self::default();
        if let [document] = documents {
            let lifecycle: Lifecycle = serde_json::from_str(document).unwrap_or_default();
            for version in lifecycle.versions {
                let name = version.name.clone();
                support.versions.entry(name).or_insert(version);
            }
        }
        support
    }

    /// Returns the support of a version on a day.
    pub(crate) fn of(
        &mut self,
        version: &str,
        on: Day,
        cluster: Option<OpenShiftMinor>,
    ) -> Support {
        let Some(version) = comparable_version(version) else {
            return Support::default();
        };
        let name = format!("{}.{}", version.major, version.minor);
        let Some(found) = self.versions.get(&name) else {
            return Support::default();
        };
        let support = self.found.entry(name);
        support
            .or_insert_with(|| Support::new(found, on, cluster))
            .clone()
    }
}

impl Support {
    fn new(version: &LifecycleVersion, on: Day, cluster: Option<OpenShiftMinor>) -> Self {
        let mut support = Self::default();
        let openshift = version
            .platform_compatibility
            .iter()
            .find(|platform| platform.name == "openshift");
        if let Some(platform) = openshift
            && let Some(cluster) = cluster
        {
            support.is_compatible = Some(platform.versions.contains(&cluster.to_string()));
        }
        let mut phases = Vec::new();
        for phase in &version.phases {
            let Some(days) = phase.days() else {
                // It leaves a gap, so none is believed.
                return support;
            };
            phases.push((days, &phase.name));
        }
        let Some(last) = phases.iter().map(|(days, _)| *days.end()).max() else {
            return support;
        };
        if let Some((_, name)) = phases.iter().find(|(days, _)| days.contains(&on)) {
            support.state = SupportState::Supported;
            support.days_left = Some(last.days_after(on));
            support.phase = Some((*name).clone());
        } else if phases.iter().any(|(days, _)| *days.start() > on) {
            support.state = SupportState::NotYet;
        } else {
            support.state = SupportState::SelfSupport;
        }
        support
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Judges the rule by the table of cases that judges the page too.
    #[test]
    fn support_is_that_of_the_table() {
        let cases = include_str!("../../../../../tests/cases.json");
        let cases: Value = serde_json::from_str(cases).unwrap();
        for case in cases["support"].as_array().unwrap() {
            let document = json!({"versions": case["versions"]}).to_string();
            let [version, day] = ["version", "day"].map(|field| case[field].as_str().unwrap());
            let support = PackageSupport::new(&[&document]).of(version, day.parse().unwrap(), None);
            let found = [
                json!(support.state),
                json!(support.phase),
                json!(support.days_left),
            ];
            let expected = ["state", "phase", "daysLeft"].map(|field| case[field].clone());
            assert_eq!(found, expected, "{}", case["case"]);
        }
    }
}
