use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Document, Kind, StoredDocument};

/// Maximum number of findings that one document has. More of them help no reader, and a hostile catalog may have millions.
pub const FINDINGS_MAX: usize = 1000;

/// Maximum number of names of unknown schemas that one document has, over all Packages.
const SCHEMAS_MAX: usize = 1000;

/// The findings of a validation: how the content of a Snapshot violates the rules of OLM. A function of the content and of the
/// version of the rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// Version of the rules. Findings by other rules are not used for another validation.
    pub rules: u32,
    /// ValidationVerdict on the whole catalog.
    pub verdict: ValidationVerdict,
    /// Numbers of all findings, also of those that are not listed.
    #[serde(flatten)]
    pub counts: ValidationCounts,
    /// The Packages that have findings or documents of unknown schemas, in the order of the Snapshot.
    pub packages: Vec<PackageFindings>,
}

/// ValidationVerdict of a validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ValidationVerdict {
    /// No finding is an error.
    Valid,
    /// OLM refuses the catalog.
    Invalid,
}

/// Numbers of findings, and of documents that the rules do not know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidationCounts {
    /// Number of findings for which OLM refuses the catalog.
    pub errors: u64,
    /// Number of other findings.
    pub warnings: u64,
    /// Number of documents of unknown schemas, newer versions of the known ones included. They pass.
    pub unknown_schemas: u64,
}

/// Findings of one Package, or of the global group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageFindings {
    /// Name of the Package; empty for the global group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Numbers of all its findings, also of those that are not listed.
    #[serde(flatten)]
    pub counts: ValidationCounts,
    /// Number of documents of each unknown schema; empty if there are too many schemas to list.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schemas: BTreeMap<String, u64>,
    /// Its findings. If the document would have too many, warnings are left out before errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ValidationFinding>,
}

/// Violation of one rule. Control characters in its texts are escaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidationFinding {
    /// Weight of the violation.
    pub severity: FindingSeverity,
    /// Stable code of the rule, such as `channel-cycle`.
    pub rule: String,
    /// Name of the channel, if the finding is about one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Name of the bundle or of the entry, if the finding is about one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bundle: String,
    /// The rule in words, and the value that violates it.
    pub message: String,
    /// Line in the Shard, from 1.
    pub line: u64,
}

/// Weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingSeverity {
    /// `opm validate` or `opm serve` refuses the catalog.
    Error,
    /// A known weakness of real catalogs that neither refuses.
    Warning,
}

impl ValidationCounts {
    /// Returns the verdict that follows from the numbers.
    pub const fn verdict(&self) -> ValidationVerdict {
        match self.errors {
            0 => ValidationVerdict::Valid,
            _ => ValidationVerdict::Invalid,
        }
    }

    const fn add(&mut self, other: Self) {
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.unknown_schemas += other.unknown_schemas;
    }

    const fn of(&mut self, severity: FindingSeverity) -> &mut u64 {
        match severity {
            FindingSeverity::Error => &mut self.errors,
            FindingSeverity::Warning => &mut self.warnings,
        }
    }
}

impl PackageFindings {
    /// Creates the findings of a Package that has none yet.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Counts a finding, and lists it if it is among the first [`FINDINGS_MAX`] of its weight.
    pub fn add(&mut self, finding: ValidationFinding) {
        let count = self.counts.of(finding.severity);
        *count += 1;
        if *count <= FINDINGS_MAX as u64 {
            self.findings.push(finding);
        }
    }

    /// Counts the documents of unknown schemas.
    pub fn add_schemas(&mut self, schemas: BTreeMap<String, u64>) {
        self.counts.unknown_schemas += schemas.values().sum::<u64>();
        self.schemas.extend(schemas);
    }

    /// Returns true if nothing is left out of the lists.
    pub fn is_complete(&self) -> bool {
        let findings = self.counts.errors + self.counts.warnings;
        findings == self.findings.len() as u64 && self.counts.unknown_schemas == self.schemas.values().sum::<u64>()
    }

    fn is_empty(&self) -> bool {
        self.counts == ValidationCounts::default()
    }
}

impl Findings {
    /// Returns the findings of a catalog, whose Packages come in the order of the Snapshot. It holds at most twice
    /// [`FINDINGS_MAX`] findings at a time, however many Packages there are.
    pub fn collect<E>(rules: u32, packages: impl IntoIterator<Item = Result<PackageFindings, E>>) -> Result<Self, E> {
        let mut left = ValidationCounts {
            errors: FINDINGS_MAX as u64,
            warnings: FINDINGS_MAX as u64,
            unknown_schemas: SCHEMAS_MAX as u64,
        };
        let mut counts = ValidationCounts::default();
        let mut listed = Vec::new();
        for package in packages {
            let mut package = package?;
            counts.add(package.counts);
            package.findings.retain(|finding| take(left.of(finding.severity)));
            match left.unknown_schemas.checked_sub(package.schemas.len() as u64) {
                Some(rest) => left.unknown_schemas = rest,
                None => package.schemas.clear(),
            }
            if !package.is_empty() {
                listed.push(package);
            }
        }
        // What errors do not need is for warnings.
        let mut warnings = left.errors;
        for package in &mut listed {
            package
                .findings
                .retain(|finding| finding.severity == FindingSeverity::Error || take(&mut warnings));
        }
        Ok(Self {
            rules,
            verdict: counts.verdict(),
            counts,
            packages: listed,
        })
    }

    /// Returns the first finding with its Package: an error, if there is one.
    pub fn first(&self) -> Option<(&str, &ValidationFinding)> {
        let all = || {
            let packages = self.packages.iter();
            packages.flat_map(|package| package.findings.iter().map(|finding| (package.name.as_str(), finding)))
        };
        let is_error = |(_, finding): &(&str, &ValidationFinding)| finding.severity == FindingSeverity::Error;
        all().find(is_error).or_else(|| all().next())
    }
}

/// Takes one of what is left. Returns false if nothing is left.
const fn take(left: &mut u64) -> bool {
    let is_left = *left > 0;
    *left = left.saturating_sub(1);
    is_left
}

impl Document for Findings {
    const NAME: &'static str = "findings";
    const INDENTED: bool = false;
}

impl StoredDocument for Findings {
    const KIND: Kind = Kind::Findings;
    // 64 MiB: the names of as many Packages as a Snapshot may have, and 1,000 findings of at most some kilobytes.
    const MAX_BYTES: u64 = 64 << 20;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn finding(severity: FindingSeverity) -> ValidationFinding {
        ValidationFinding {
            severity,
            rule: "channel-cycle".into(),
            channel: "stable".into(),
            bundle: String::new(),
            message: "the channel is a cycle".into(),
            line: 2,
        }
    }

    fn package(name: &str, errors: usize, warnings: usize) -> PackageFindings {
        let mut package = PackageFindings::new(name);
        (0..warnings).for_each(|_| package.add(finding(FindingSeverity::Warning)));
        (0..errors).for_each(|_| package.add(finding(FindingSeverity::Error)));
        package
    }

    fn collected(packages: Vec<PackageFindings>) -> Findings {
        Findings::collect(7, packages.into_iter().map(Ok::<_, Infallible>)).unwrap()
    }

    fn listed(findings: &Findings) -> Vec<(&str, usize)> {
        let packages = findings.packages.iter();
        packages
            .map(|package| (package.name.as_str(), package.findings.len()))
            .collect()
    }

    #[test]
    fn findings_read_back_from_their_stored_bytes() {
        let mut second = package("b", 1, 0);
        second.add_schemas([("x.y".to_owned(), 3)].into());
        let findings = collected(vec![package("", 0, 0), package("a", 0, 1), second]);
        let stored = findings.to_stored().unwrap();
        assert_eq!(Findings::from_stored(&stored).unwrap(), findings);
        let counts = ValidationCounts {
            errors: 1,
            warnings: 1,
            unknown_schemas: 3,
        };
        assert_eq!(
            (findings.counts, findings.verdict),
            (counts, ValidationVerdict::Invalid)
        );
        assert_eq!(listed(&findings), [("a", 1), ("b", 1)]);
        assert_eq!(findings.first().unwrap().0, "b", "an error comes before a warning");
    }

    #[test]
    fn findings_list_a_thousand_and_drop_warnings_first() {
        let all = collected(vec![package("a", 0, 400), package("b", 600, 0)]);
        assert_eq!(listed(&all), [("a", 400), ("b", 600)]);
        assert!(all.packages.iter().all(PackageFindings::is_complete));
        let one_more = collected(vec![package("a", 0, 401), package("b", 600, 0)]);
        assert_eq!(listed(&one_more), [("a", 400), ("b", 600)]);
        assert!(!one_more.packages[0].is_complete());
        assert_eq!(one_more.counts.warnings, 401);
        let errors = collected(vec![package("a", 0, 1), package("b", 1001, 0), package("c", 1, 0)]);
        assert_eq!(listed(&errors), [("a", 0), ("b", 1000), ("c", 0)]);
        assert_eq!(errors.counts.errors, 1002);
    }

    #[test]
    fn findings_list_a_thousand_names_of_schemas() {
        let package = |name: &str, names: usize| {
            let mut package = PackageFindings::new(name);
            package.add_schemas((0..names).map(|at| (format!("s{at}"), 2)).collect());
            package
        };
        let findings = collected(vec![package("a", 900), package("b", 101), package("c", 100)]);
        let names: Vec<usize> = findings.packages.iter().map(|package| package.schemas.len()).collect();
        assert_eq!(names, [900, 0, 100]);
        assert!(!findings.packages[1].is_complete() && findings.packages[2].is_complete());
        assert_eq!(
            (findings.counts.unknown_schemas, findings.verdict),
            (2202, ValidationVerdict::Valid)
        );
    }
}
