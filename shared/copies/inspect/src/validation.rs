use std::collections::BTreeMap;

use olm::{FINDINGS_MAX, Rule, RuleViolation, SchemaCounts, Severity, ShardValidator};
use publish::RenderSink;
use render::{MetaPlace, RenderError};
use serde::Serialize;

use crate::InspectError;

/// Longest path of a file in a finding, in characters.
const PATH_CHARS: usize = 2000;

/// Result of a validation for programs and people: the first findings, and the number of all.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// 1. A change of the fields that are here increases it.
    pub format_version: u32,
    /// False if `opm validate` refuses the catalog.
    pub valid: bool,
    /// False if `opm serve` refuses the catalog.
    pub servable: bool,
    /// Number of findings of `opm validate`.
    pub errors: u64,
    /// Number of findings of `opm serve` alone.
    pub serve_errors: u64,
    /// Number of findings that no program refuses.
    pub warnings: u64,
    /// Number of findings by the code of their rule.
    pub rules: BTreeMap<&'static str, u64>,
    /// Numbers of documents by their schema.
    pub documents: SchemaCounts,
    /// First findings, at most [`FINDINGS_MAX`].
    pub findings: Vec<PlacedFinding>,
}

/// A violation with its place in the files of the source.
#[derive(Debug, Serialize)]
pub struct PlacedFinding {
    /// Severity of the rule.
    pub severity: Severity,
    /// Rule and what breaks it.
    #[serde(flatten)]
    pub violation: RuleViolation,
    /// Meaning of the rule.
    pub message: &'static str,
    /// Absent for a catalog of the store. `line` is then a line of the shard of the package, else
    /// of this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Number of the document in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<usize>,
}

impl Validation {
    /// Creates the result of a catalog without documents.
    pub fn new() -> Self {
        Self {
            format_version: 1,
            valid: true,
            servable: true,
            ..Self::default()
        }
    }

    /// Validates what was read of a source.
    pub(crate) fn of_sink(sink: RenderSink) -> Result<Self, InspectError> {
        let mut validation = Self::new();
        let rendering = match sink.finish() {
            Ok(rendering) => rendering,
            // A document above a limit of this program may be valid, so that is an error of the
            // command.
            Err(RenderError::Invalid { problems })
                if problems.iter().all(|problem| problem.limit.is_none()) =>
            {
                for problem in problems {
                    let violation = RuleViolation {
                        rule: Rule::NotFbc,
                        package: String::new(),
                        channel: String::new(),
                        bundle: String::new(),
                        detail: problem.reason,
                        line: 0,
                    };
                    validation.push(violation, Some(problem.path), None);
                }
                return Ok(validation);
            }
            Err(error) => return Err(error.into()),
        };
        for shard in rendering.shards() {
            let mut validator = ShardValidator::new(&shard.name, fbc::is_yaml);
            let mut sink = |violation| validation.add(violation, &shard.places);
            rendering.read_lines(shard, |lines| validator.push(lines, &mut sink))?;
            let counts = validator.finish(&mut sink);
            validation.documents.merge(counts);
        }
        Ok(validation)
    }

    /// Validates the lines of a shard.
    pub fn add_shard(&mut self, name: &str, lines: &[u8]) {
        let mut validator = ShardValidator::new(name, fbc::is_yaml);
        let mut sink = |violation| self.add(violation, &[]);
        validator.push(lines, &mut sink);
        let counts = validator.finish(&mut sink);
        self.documents.merge(counts);
    }

    /// Adds a violation in a shard. A source has the places of the documents of the shard.
    fn add(&mut self, mut violation: RuleViolation, places: &[MetaPlace]) {
        let place = violation.line.checked_sub(1).and_then(|at| places.get(at));
        if let Some(place) = place {
            violation.line = place.position.line;
        }
        let file = place.map(|place| model::text::line(&place.path, PATH_CHARS));
        self.push(violation, file, place.map(|place| place.position.document));
    }

    fn push(&mut self, violation: RuleViolation, file: Option<String>, document: Option<usize>) {
        let severity = violation.rule.severity();
        match severity {
            Severity::Error => self.errors += 1,
            Severity::ServeError => self.serve_errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        self.valid = self.errors == 0;
        self.servable = self.valid && self.serve_errors == 0;
        *self.rules.entry(violation.rule.code()).or_default() += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(PlacedFinding {
                severity,
                message: violation.rule.meaning(),
                violation,
                file,
                document,
            });
        }
    }
}
