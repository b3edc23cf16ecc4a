use std::collections::BTreeMap;

use olm::{FINDINGS_MAX, Rule, RuleViolation, SchemaCounts, Severity};
use render::MetaPlace;
use serde::Serialize;

use super::{Table, print_json, print_table, print_text};

/// Result of a validation: the first findings, and the number of all.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Validation {
    format_version: u32,
    /// False if `opm validate` refuses the catalog.
    valid: bool,
    /// False if `opm serve` refuses the catalog.
    servable: bool,
    errors: u64,
    serve_errors: u64,
    warnings: u64,
    /// Number of findings by the code of their rule.
    rules: BTreeMap<&'static str, u64>,
    documents: SchemaCounts,
    findings: Vec<PlacedFinding>,
}

/// A violation with its place in the files of the source.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlacedFinding {
    severity: Severity,
    #[serde(flatten)]
    violation: RuleViolation,
    message: &'static str,
    /// Absent for a catalog of the store. `line` is then a line of the shard of the package, else of this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<usize>,
}

impl Validation {
    /// Adds a violation in a shard whose documents come from `places`; empty for a shard of the store.
    pub(crate) fn add(&mut self, mut violation: RuleViolation, places: &[MetaPlace]) {
        let place = violation.line.checked_sub(1).and_then(|at| places.get(at));
        if let Some(place) = place {
            violation.line = place.position.line;
        }
        let file = place.map(|place| super::printable(&place.path));
        self.push(violation, file, place.map(|place| place.position.document));
    }

    /// Adds a file that is not FBC.
    pub(crate) fn add_file(&mut self, problem: &render::FileProblem) {
        let violation = RuleViolation {
            rule: Rule::NotFbc,
            package: String::new(),
            channel: String::new(),
            bundle: String::new(),
            detail: problem.reason.clone(),
            line: 0,
        };
        self.push(violation, Some(problem.path.clone()), None);
    }

    fn push(&mut self, violation: RuleViolation, file: Option<String>, document: Option<usize>) {
        let severity = violation.rule.severity();
        *match severity {
            Severity::Error => &mut self.errors,
            Severity::ServeError => &mut self.serve_errors,
            Severity::Warning => &mut self.warnings,
        } += 1;
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

    pub(crate) fn count(&mut self, documents: SchemaCounts) {
        self.documents.merge(documents);
    }

    /// Returns true if no finding is an error.
    pub(crate) const fn is_sound(&self) -> bool {
        self.errors == 0 && self.serve_errors == 0
    }

    /// Prints the counts and the kept findings as one JSON object, or one line for each finding and then the counts.
    pub(crate) fn print(mut self, json: bool) -> anyhow::Result<()> {
        self.format_version = 1;
        self.valid = self.errors == 0;
        self.servable = self.is_sound();
        if json {
            return print_json(&self);
        }
        if !self.findings.is_empty() {
            print_table(&self.findings)?;
        }
        let rest = self.rules.values().sum::<u64>() - self.findings.len() as u64;
        if rest > 0 {
            print_text(&format!("and {rest} more findings\n"))?;
        }
        let others: u64 = self.documents.other.values().sum();
        print_text(&format!(
            "{}: {} errors, {} errors of opm serve alone, {} warnings; {} documents of OLM, {others} of other schemas\n",
            if self.valid { "valid" } else { "invalid" },
            self.errors,
            self.serve_errors,
            self.warnings,
            self.documents.known,
        ))
    }
}

impl Table for PlacedFinding {
    const HEADERS: &'static [&'static str] = &["SEVERITY", "RULE", "PACKAGE", "CHANNEL", "BUNDLE", "PLACE", "FINDING"];

    fn row(&self) -> Vec<String> {
        let violation = &self.violation;
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::ServeError => "serve-error",
            Severity::Warning => "warning",
        };
        let place = match (&self.file, self.document) {
            (Some(file), Some(document)) => format!("{file}:{} (document {document})", violation.line),
            (Some(file), None) => file.clone(),
            (None, _) => format!("line {}", violation.line),
        };
        let text = match violation.detail.as_str() {
            "" => self.message.to_owned(),
            detail => format!("{}: {detail}", self.message),
        };
        vec![
            severity.to_owned(),
            violation.rule.code().to_owned(),
            violation.package.clone(),
            violation.channel.clone(),
            violation.bundle.clone(),
            place,
            text,
        ]
    }
}
