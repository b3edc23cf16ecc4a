//! The validation of new content by the rules of OLM, before it is published.

use std::{fmt, str};

use model::{FindingSeverity, Findings, PackageFindings, ValidationCounts, ValidationFinding};
use olm::{RuleViolation, Severity, ShardValidator};

use super::once::Poll;
use crate::PollError;

/// Maximum number of findings that an error names.
const EXAMPLES_MAX: usize = 5;

/// Treatment of content that violates the rules of OLM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ValidationMode {
    /// Publishes without a validation.
    Off,
    /// Publishes, and names the findings.
    #[default]
    Warn,
    /// Does not publish content with errors, unless a poll is forced. Warnings do not count.
    Refuse,
}

/// Text that is not a [`ValidationMode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not off, warn or refuse")]
pub struct ValidationModeError(String);

/// Content that is not published, because the catalog refuses errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has {errors}, as `catalog-mirror validate` lists them: {}; correct the catalog, force the poll to publish it as it is, \
     or set validate: warn",
    .examples.join("; "),
    errors = count(*.errors, "error")
)]
pub struct InvalidCatalog {
    /// Number of errors.
    pub errors: u64,
    /// The first errors in words, at most five.
    pub examples: Vec<String>,
}

impl str::FromStr for ValidationMode {
    type Err = ValidationModeError;

    fn from_str(text: &str) -> Result<Self, ValidationModeError> {
        match text {
            "off" => Ok(Self::Off),
            "warn" => Ok(Self::Warn),
            "refuse" => Ok(Self::Refuse),
            other => Err(ValidationModeError(model::text::line(other, 100))),
        }
    }
}

impl InvalidCatalog {
    /// Returns the first errors of a catalog that has some.
    pub fn of(findings: &Findings) -> Option<Self> {
        (findings.counts.errors > 0).then(|| Self::new(findings))
    }

    fn new(findings: &Findings) -> Self {
        let packages = findings.packages.iter();
        let all = packages.flat_map(|package| package.findings.iter().map(|finding| (&*package.name, finding)));
        let errors = all.filter(|(_, finding)| finding.severity == FindingSeverity::Error);
        Self {
            errors: findings.counts.errors,
            examples: errors
                .take(EXAMPLES_MAX)
                .map(|(package, finding)| NamedFinding(package, finding).to_string())
                .collect(),
        }
    }
}

impl Poll<'_> {
    /// Reports the findings. Fails if the catalog refuses content with errors.
    pub(crate) fn judge(&self, findings: &Findings) -> Result<(), PollError> {
        let ValidationCounts {
            errors,
            warnings,
            unknown_schemas,
        } = findings.counts;
        let first = findings
            .first()
            .map(|(package, finding)| NamedFinding(package, finding));
        match (self.catalog.validation, first) {
            (ValidationMode::Refuse, _) if errors > 0 && !self.force => {
                return Err(InvalidCatalog::new(findings).into());
            }
            (_, Some(first)) if errors > 0 => tracing::warn!(
                errors,
                warnings,
                unknown_schemas,
                %first,
                "the new content violates rules of OLM"
            ),
            (_, Some(first)) => tracing::info!(warnings, unknown_schemas, %first, "the new content has weaknesses"),
            (_, None) => {}
        }
        Ok(())
    }
}

/// Validator of one Shard that keeps its findings as a Snapshot records them.
pub struct FindingsRecorder {
    validator: ShardValidator,
    found: PackageFindings,
}

impl FindingsRecorder {
    /// Creates a recorder for the Shard `name`; the global group has an empty name.
    pub fn new(name: &str) -> Self {
        Self {
            validator: ShardValidator::new(name, fbc::is_yaml),
            found: PackageFindings::new(name),
        }
    }

    /// Adds the next bytes, which may start or end within a line.
    pub fn push(&mut self, lines: &[u8]) {
        let found = &mut self.found;
        self.validator
            .push(lines, &mut |violation| found.add(finding(violation)));
    }

    /// Returns the findings.
    pub fn finish(self) -> PackageFindings {
        let mut found = self.found;
        let counts = self.validator.finish(&mut |violation| found.add(finding(violation)));
        found.add_schemas(counts.other);
        found
    }
}

fn finding(violation: RuleViolation) -> ValidationFinding {
    let rule = violation.rule;
    ValidationFinding {
        severity: match rule.severity() {
            Severity::Error | Severity::ServeError => FindingSeverity::Error,
            Severity::Warning => FindingSeverity::Warning,
        },
        rule: rule.code().to_owned(),
        channel: violation.channel,
        bundle: violation.bundle,
        message: match violation.detail.as_str() {
            "" => rule.meaning().to_owned(),
            detail => format!("{}: {detail}", rule.meaning()),
        },
        line: violation.line as u64,
    }
}

/// A finding with the name of its Package, in words.
struct NamedFinding<'a>(&'a str, &'a ValidationFinding);

impl fmt::Display for NamedFinding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(package, finding) = self;
        let package = model::text::line(package, 100);
        let names = [
            ("package", &package),
            ("channel", &finding.channel),
            ("bundle", &finding.bundle),
        ];
        let names = names.iter().filter(|(_, name)| !name.is_empty());
        let names: Vec<String> = names.map(|(kind, name)| format!("{kind} {name}")).collect();
        match names.is_empty() {
            true => write!(f, "{}", finding.message),
            false => write!(f, "{}: {}", names.join(", "), finding.message),
        }
    }
}

fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use render::RenderError;

    use super::*;

    fn findings(errors: usize) -> Findings {
        let mut package = PackageFindings::new("db");
        for at in 0..errors {
            package.add(ValidationFinding {
                severity: FindingSeverity::Error,
                rule: "channel-cycle".into(),
                channel: format!("c{at}"),
                bundle: String::new(),
                message: "the channel is a cycle".into(),
                line: 2,
            });
        }
        Findings::collect(1, [Ok::<_, RenderError>(package)]).unwrap()
    }

    #[test]
    fn invalid_catalog_says_what_is_wrong_and_what_to_do() {
        assert_eq!(
            InvalidCatalog::new(&findings(1)).to_string(),
            "it has 1 error, as `catalog-mirror validate` lists them: package db, channel c0: the channel is a cycle; \
             correct the catalog, force the poll to publish it as it is, or set validate: warn"
        );
        let many = InvalidCatalog::new(&findings(7));
        assert_eq!((many.errors, many.examples.len()), (7, EXAMPLES_MAX));
    }

    #[test]
    fn validation_mode_reads_its_three_words() {
        let modes = ["off", "warn", "refuse"].map(|text| text.parse::<ValidationMode>().unwrap());
        assert_eq!(
            modes,
            [ValidationMode::Off, ValidationMode::Warn, ValidationMode::Refuse]
        );
        assert_eq!(
            "Warn".parse::<ValidationMode>().unwrap_err().to_string(),
            "\"Warn\" is not off, warn or refuse"
        );
    }
}
