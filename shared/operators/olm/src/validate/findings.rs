//! Findings of a validation as facts about packages.

use model::{Facts, FindingSeverity, PackageFindings, ValidationCounts, ValidationFinding, text};
use serde_json::value::RawValue;

use super::{RuleViolation, Severity, ShardValidator};
use crate::facts::{FactKind, Recorder, is_json, json};

/// Maximum number of findings of one weight that are listed for one Package. More of them help no
/// reader, and a hostile catalog may have millions.
pub const FINDINGS_MAX: usize = 1000;

/// Maximum number of errors that a summary names.
const EXAMPLES_MAX: usize = 5;

/// Maximum number of characters of the name of a Package in a summary.
const NAME_CHARS: usize = 100;

/// Violations of the rules of OLM, each part a [`PackageFindings`].
pub const FINDINGS: FactKind = FactKind {
    name: "findings",
    version: 2,
    recorder: |shard| {
        let mut validator = ShardValidator::new(shard.name, shard.is_yaml);
        validator.budget = shard.budget.clone();
        let found = PackageFindings::default();
        Box::new(FindingsRecorder { validator, found })
    },
    bytes_max: 16 << 20,
    is_part: is_json::<PackageFindings>,
    shorten: |part| {
        let findings: PackageFindings = serde_json::from_str(part.get()).unwrap_or_default();
        json(&PackageFindings {
            counts: findings.counts,
            ..PackageFindings::default()
        })
    },
};

struct FindingsRecorder {
    validator: ShardValidator,
    found: PackageFindings,
}

/// Findings of a whole catalog in short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValidationSummary {
    /// Numbers of all findings.
    pub counts: ValidationCounts,
    /// First errors in words, at most five.
    pub errors: Vec<String>,
    /// First warning in words.
    pub warning: Option<String>,
}

impl Recorder for FindingsRecorder {
    fn push(&mut self, lines: &[u8]) {
        let found = &mut self.found;
        self.validator
            .push(lines, &mut |violation| add(found, violation));
    }

    fn finish(&mut self) -> Option<Box<RawValue>> {
        let found = &mut self.found;
        found.schemas = self
            .validator
            .finish(&mut |violation| add(found, violation))
            .other;
        found.counts.unknown_schemas = found.schemas.values().sum();
        let has_findings = found.counts != ValidationCounts::default();
        Some(json(&has_findings.then_some(found)))
    }
}

/// Counts a violation, and lists it if it is among the first of its weight.
fn add(found: &mut PackageFindings, violation: RuleViolation) {
    let rule = violation.rule;
    let (severity, count) = match rule.severity() {
        Severity::Error | Severity::ServeError => {
            (FindingSeverity::Error, &mut found.counts.errors)
        }
        Severity::Warning => (FindingSeverity::Warning, &mut found.counts.warnings),
    };
    *count += 1;
    if *count > FINDINGS_MAX as u64 {
        return;
    }
    found.findings.push(ValidationFinding {
        severity,
        rule: rule.code().to_owned(),
        message: violation.text(),
        channel: violation.channel,
        bundle: violation.bundle,
        line: violation.line as u64,
    });
}

impl ValidationSummary {
    /// Reads the findings of a catalog, one Package at a time.
    ///
    /// # Errors
    /// The error of the first part that has another form.
    pub fn of(facts: &Facts<Box<RawValue>>) -> serde_json::Result<Self> {
        let mut summary = Self::default();
        for (package, part) in facts.parts() {
            let found: PackageFindings = serde_json::from_str(part.get())?;
            summary.counts.errors += found.counts.errors;
            summary.counts.warnings += found.counts.warnings;
            summary.counts.unknown_schemas += found.counts.unknown_schemas;
            for finding in &found.findings {
                match finding.severity {
                    FindingSeverity::Error if summary.errors.len() < EXAMPLES_MAX => {
                        summary.errors.push(named(package, finding));
                    }
                    FindingSeverity::Warning if summary.warning.is_none() => {
                        summary.warning = Some(named(package, finding));
                    }
                    FindingSeverity::Error | FindingSeverity::Warning => {}
                }
            }
        }
        Ok(summary)
    }
}

/// Returns a finding with the name of its Package, in words.
fn named(package: &str, finding: &ValidationFinding) -> String {
    let package = text::line(package, NAME_CHARS);
    let names = [
        ("package", &package),
        ("channel", &finding.channel),
        ("bundle", &finding.bundle),
    ];
    let names = names.into_iter().filter(|(_, name)| !name.is_empty());
    let names: Vec<String> = names.map(|(kind, name)| format!("{kind} {name}")).collect();
    match names.as_slice() {
        [] => finding.message.clone(),
        names => format!("{}: {}", names.join(", "), finding.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_has_the_first_errors_and_the_first_warning_in_words() {
        let finding = |severity, channel: &str| ValidationFinding {
            severity,
            rule: "channel-cycle".into(),
            channel: channel.into(),
            bundle: String::new(),
            message: "the channel is a cycle".into(),
            line: 2,
        };
        let mut found = PackageFindings {
            counts: ValidationCounts {
                errors: 7,
                warnings: 1,
                unknown_schemas: 2,
            },
            ..PackageFindings::default()
        };
        found.findings.push(finding(FindingSeverity::Warning, ""));
        let channels = ["c0", "c1", "c2", "c3", "c4", "c5", "c6"];
        let errors = channels.map(|channel| finding(FindingSeverity::Error, channel));
        found.findings.extend(errors);
        let mut facts = Facts::new(1);
        facts.packages.insert("db".to_owned(), json(&found));
        facts
            .packages
            .insert(String::new(), json(&PackageFindings::default()));
        let summary = ValidationSummary::of(&facts).unwrap();
        assert_eq!(summary.counts, found.counts);
        assert_eq!(summary.errors.len(), EXAMPLES_MAX);
        assert_eq!(
            summary.errors[0],
            "package db, channel c0: the channel is a cycle"
        );
        assert_eq!(
            summary.warning.unwrap(),
            "package db: the channel is a cycle"
        );
    }
}
