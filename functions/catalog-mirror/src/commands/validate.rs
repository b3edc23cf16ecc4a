use std::collections::BTreeMap;

use ::render::{MetaPlace, RenderError};
use clap::Args;
use model::CatalogName;
use olm::{FINDINGS_MAX, Rule, RuleViolation, SchemaCounts, Severity, ShardValidator};
use publish::RenderSink;
use serde::Serialize;
use source::Source;
use store::Store;

use super::render::read_source;
use crate::args::{self, Access, CatalogAccess};
use crate::published;
use crate::table::{Column, Table, print_table};
use terminal::Exit;
use terminal::{print_report, print_text, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
The rules are those of operator-registry v1.73.0. A catalog is valid if `opm validate` accepts it. opm stops at its first \
error; here all are found. Two rules are those of `opm serve` alone, with the severity `serve-error`. Icons and \
phases of support give only warnings. Documents of other schemas, such as olm.bundle.v2, pass and are counted.

At most 1,000 findings are printed, with the number of all. The code of a rule, such as channel-cycle, never changes.

  catalog-mirror validate ./configs
  catalog-mirror validate quay.io/operatorhubio/catalog:latest --json | jq -r '.findings[].rule'
  catalog-mirror validate --store /var/lib/catalog-mirror operatorhubio

Exit codes: 0 no errors, 1 errors or the catalog cannot be read, 2 the command line is wrong.")]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) access: CatalogAccess,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Source as for `render`, such as dir:configs or quay.io/a/b:v1, or the name of a catalog of
    /// the store. A source has a colon or a slash in it.
    #[arg(value_name = "SOURCE|NAME", value_parser = ValidatedCatalog::parse)]
    pub(crate) what: ValidatedCatalog,
}

/// A catalog to validate.
#[derive(Debug, Clone)]
pub(crate) enum ValidatedCatalog {
    /// Files of a source.
    Source(Source),
    /// Published state of a catalog in the store.
    Published(CatalogName),
}

impl ValidatedCatalog {
    fn parse(text: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        if args::is_source(text) {
            Ok(Self::Source(Source::of_argument(text)?))
        } else {
            Ok(Self::Published(text.parse()?))
        }
    }
}

/// Result of a validation for programs and people: the first findings, and the number of all.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Validation {
    format_version: u32,
    /// False if `opm validate` refuses the catalog.
    valid: bool,
    /// False if `opm serve` refuses the catalog.
    servable: bool,
    /// Number of findings of `opm validate`.
    errors: u64,
    /// Number of findings of `opm serve` alone.
    serve_errors: u64,
    /// Number of findings that no program refuses.
    warnings: u64,
    /// Number of findings by the code of their rule.
    rules: BTreeMap<&'static str, u64>,
    documents: SchemaCounts,
    findings: Vec<PlacedFinding>,
}

/// A violation with its place in the files of the source.
#[derive(Serialize)]
struct PlacedFinding {
    severity: Severity,
    #[serde(flatten)]
    violation: RuleViolation,
    /// Meaning of the rule.
    message: &'static str,
    /// Absent for a catalog of the store. `line` is then a line of the shard of the package, else
    /// of this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Number of the document in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<usize>,
}

pub(crate) async fn run(args: ValidateArgs) -> anyhow::Result<Exit> {
    let validation = match args.what {
        ValidatedCatalog::Source(source) => {
            read_source(&source, &args.access.registries, true, validate_rendered).await?
        }
        ValidatedCatalog::Published(name) => {
            let store = args.access.store.open_alone(Access::Read).await?;
            validate_published(&*store, &name).await?
        }
    };
    print_report(&validation, args.json, print_validation)?;
    Ok(Exit::of_check(validation.servable))
}

fn validate_rendered(sink: RenderSink) -> anyhow::Result<Validation> {
    let mut validation = Validation::new();
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

async fn validate_published(store: &dyn Store, name: &CatalogName) -> anyhow::Result<Validation> {
    let (_, snapshot) = published::state(store, name).await?;
    let mut validation = Validation::new();
    for shard in snapshot.shards() {
        let lines = published::lines(store, shard).await?;
        let mut validator = ShardValidator::new(&shard.name, fbc::is_yaml);
        let mut sink = |violation| validation.add(violation, &[]);
        validator.push(&lines, &mut sink);
        let counts = validator.finish(&mut sink);
        validation.documents.merge(counts);
    }
    Ok(validation)
}

impl Validation {
    fn new() -> Self {
        Self {
            format_version: 1,
            valid: true,
            servable: true,
            ..Self::default()
        }
    }

    /// Adds a violation in a shard. A source has the places of the documents of the shard.
    fn add(&mut self, mut violation: RuleViolation, places: &[MetaPlace]) {
        let place = violation.line.checked_sub(1).and_then(|at| places.get(at));
        if let Some(place) = place {
            violation.line = place.position.line;
        }
        let file = place.map(|place| printable(&place.path));
        self.push(violation, file, place.map(|place| place.position.document));
    }

    fn push(&mut self, violation: RuleViolation, file: Option<String>, document: Option<usize>) {
        let severity = violation.rule.severity();
        *match severity {
            Severity::Error => &mut self.errors,
            Severity::ServeError => &mut self.serve_errors,
            Severity::Warning => &mut self.warnings,
        } += 1;
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

/// Prints one line for each kept finding, and then the counts.
fn print_validation(validation: &Validation) -> anyhow::Result<()> {
    if !validation.findings.is_empty() {
        print_table(&validation.findings)?;
    }
    let rest = match validation.rules.values().sum::<u64>() - validation.findings.len() as u64 {
        0 => String::new(),
        rest => format!("and {rest} more findings\n"),
    };
    let others: u64 = validation.documents.other.values().sum();
    print_text(&format!(
        "{rest}{}: {} errors, {} errors of opm serve alone, {} warnings; {} documents of OLM, {others} of other schemas\n",
        if validation.valid { "valid" } else { "invalid" },
        validation.errors,
        validation.serve_errors,
        validation.warnings,
        validation.documents.known,
    ))
}

impl Table for PlacedFinding {
    const COLUMNS: &'static [Column<Self>] = &[
        ("SEVERITY", |finding| finding.severity.to_string()),
        ("RULE", |finding| finding.violation.rule.code().to_owned()),
        ("PACKAGE", |finding| finding.violation.package.clone()),
        ("CHANNEL", |finding| finding.violation.channel.clone()),
        ("BUNDLE", |finding| finding.violation.bundle.clone()),
        // In a file, or else in the shard.
        ("PLACE", |finding| {
            let line = finding.violation.line;
            match (&finding.file, finding.document) {
                (Some(file), Some(document)) => format!("{file}:{line} (document {document})"),
                (Some(file), None) => file.clone(),
                (None, _) => format!("line {line}"),
            }
        }),
        ("FINDING", |finding| finding.violation.text()),
    ];
}
