//! Result of a validation for programs and people.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{FINDINGS_MAX, Rule, RuleViolation, SchemaCounts, Severity, ShardValidator};

/// Result of a validation: the first findings, and the number of all.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    format_version: u32,
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
    /// Numbers of documents.
    pub documents: SchemaCounts,
    /// First findings.
    pub findings: Vec<PlacedFinding>,
}

/// A violation with its place in the files of the source.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacedFinding {
    /// Weight of the rule.
    pub severity: Severity,
    /// The violation itself.
    #[serde(flatten)]
    pub violation: RuleViolation,
    /// Meaning of the rule.
    pub message: &'static str,
    /// Absent for a catalog of the store. `line` is then a line of the shard of the package, else of this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Number of the document in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<usize>,
}

/// Place of a document in the files of a source.
#[derive(Debug, Clone)]
pub struct FilePlace {
    /// Path of the file.
    pub file: String,
    /// Number of the document in it.
    pub document: usize,
    /// First line of the document.
    pub line: usize,
}

impl Default for Validation {
    fn default() -> Self {
        Self {
            format_version: 1,
            valid: true,
            servable: true,
            errors: 0,
            serve_errors: 0,
            warnings: 0,
            rules: BTreeMap::new(),
            documents: SchemaCounts::default(),
            findings: Vec::new(),
        }
    }
}

impl Validation {
    /// Adds a violation in a shard. `place` finds the place of a document by its number in the shard, from 0.
    pub fn add(&mut self, mut violation: RuleViolation, place: impl Fn(usize) -> Option<FilePlace>) {
        let found = violation.line.checked_sub(1).and_then(place);
        if let Some(place) = &found {
            violation.line = place.line;
        }
        let (file, document) = found.map(|place| (place.file, place.document)).unzip();
        self.push(violation, file, document);
    }

    /// Adds a file that is not FBC.
    pub fn add_file(&mut self, path: &str, reason: &str) {
        let violation = RuleViolation {
            rule: Rule::NotFbc,
            package: String::new(),
            channel: String::new(),
            bundle: String::new(),
            detail: reason.to_owned(),
            line: 0,
        };
        self.push(violation, Some(path.to_owned()), None);
    }

    fn push(&mut self, violation: RuleViolation, file: Option<String>, document: Option<usize>) {
        let severity = violation.rule.severity();
        *match severity {
            Severity::Error => &mut self.errors,
            Severity::ServeError => &mut self.serve_errors,
            Severity::Warning => &mut self.warnings,
        } += 1;
        self.valid = self.errors == 0;
        self.servable = self.errors == 0 && self.serve_errors == 0;
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

    /// Ends the validation of a shard, and counts its documents.
    pub fn finish(&mut self, mut validator: ShardValidator, place: impl Fn(usize) -> Option<FilePlace>) {
        let counts = validator.finish(&mut |violation| self.add(violation, &place));
        self.documents.merge(counts);
    }

    /// Returns the numbers of findings and documents in words.
    pub fn summary(&self) -> String {
        let rest = match self.rules.values().sum::<u64>() - self.findings.len() as u64 {
            0 => String::new(),
            rest => format!("and {rest} more findings\n"),
        };
        let others: u64 = self.documents.other.values().sum();
        format!(
            "{rest}{}: {} errors, {} errors of opm serve alone, {} warnings; {} documents of OLM, {others} of other schemas\n",
            if self.valid { "valid" } else { "invalid" },
            self.errors,
            self.serve_errors,
            self.warnings,
            self.documents.known,
        )
    }
}

impl PlacedFinding {
    /// Returns the place for people: in a file, or else in the shard.
    pub fn place(&self) -> String {
        let line = self.violation.line;
        match (&self.file, self.document) {
            (Some(file), Some(document)) => format!("{file}:{line} (document {document})"),
            (Some(file), None) => file.clone(),
            (None, _) => format!("line {line}"),
        }
    }
}
