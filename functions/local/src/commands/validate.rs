use std::collections::BTreeMap;

use ::render::{FileProblem, MetaPlace, RenderError};
use clap::Args;
use model::CatalogName;
use olm::{FINDINGS_MAX, Rule, RuleViolation, SchemaCounts, Severity, ShardValidator};
use publish::RenderSink;
use serde::Serialize;
use source::Source;
use store::Store;

use super::render::SourceReader;
use crate::{
    args::{self, Access, RegistryArgs, StoreArgs},
    exit::Exit,
    output::{Column, Table, print_json, print_table, print_text, printable},
    published,
};

#[derive(Debug, Args)]
#[command(after_help = "\
The rules are those of operator-registry v1.73.0. A catalog is valid if `opm validate` accepts it. opm stops at its first \
error; here all are found. Two rules are those of `opm serve` alone, with the severity `serve-error`. Icons give only \
warnings. Documents of other schemas, such as olm.bundle.v2, pass and are counted.

At most 1,000 findings are printed, with the number of all. The code of a rule, such as channel-cycle, never changes.

  catalog-mirror validate ./configs
  catalog-mirror validate quay.io/operatorhubio/catalog:latest --json | jq -r '.findings[].rule'
  catalog-mirror validate --store /var/lib/catalog-mirror operatorhubio

Exit codes: 0 no errors, 1 errors or the catalog cannot be read, 2 the command line is wrong.")]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Source as for `render`, such as dir:configs or quay.io/a/b:v1, or the name of a catalog of the store. A source has a
    /// colon or a slash in it.
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

pub(crate) async fn run(args: ValidateArgs) -> anyhow::Result<Exit> {
    let validation = match args.what {
        ValidatedCatalog::Source(source) => validate_source(&source, &args.registries).await?,
        ValidatedCatalog::Published(name) => {
            let store = args.store.open_alone(Access::Read).await?;
            validate_published(&*store, &name).await?
        }
    };
    let exit = Exit::of_check(validation.is_sound());
    validation.print(args.json)?;
    Ok(exit)
}

async fn validate_source(source: &Source, registries: &RegistryArgs) -> anyhow::Result<Validation> {
    let reader = SourceReader::new(registries)?;
    let sink = reader.read(source, true).await?;
    work::run(reader.budget, move || validate_rendered(sink)).await?
}

fn validate_rendered(sink: RenderSink) -> anyhow::Result<Validation> {
    let mut validation = Validation::default();
    let rendering = match sink.finish() {
        Ok(rendering) => rendering,
        // A document above a limit of this program may be valid, so that is an error of the command.
        Err(RenderError::Invalid { problems }) if problems.iter().all(|problem| problem.limit.is_none()) => {
            problems.iter().for_each(|problem| validation.add_file(problem));
            return Ok(validation);
        }
        Err(error) => return Err(error.into()),
    };
    for shard in rendering.shards() {
        let mut validator = ShardValidator::new(&shard.name, fbc::is_yaml);
        rendering.read_lines(shard, |lines| {
            validator.push(lines, &mut |violation| validation.add(violation, &shard.places));
        })?;
        validation.finish(validator, &shard.places);
    }
    Ok(validation)
}

async fn validate_published(store: &dyn Store, name: &CatalogName) -> anyhow::Result<Validation> {
    let (_, snapshot) = published::state(store, name).await?;
    let mut validation = Validation::default();
    for shard in snapshot.shards() {
        let lines = published::lines(store, shard).await?;
        let mut validator = ShardValidator::new(&shard.name, fbc::is_yaml);
        validator.push(&lines, &mut |violation| validation.add(violation, &[]));
        validation.finish(validator, &[]);
    }
    Ok(validation)
}

/// Result of a validation: the first findings, and the number of all.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Validation {
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
struct PlacedFinding {
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
    fn add(&mut self, mut violation: RuleViolation, places: &[MetaPlace]) {
        let place = violation.line.checked_sub(1).and_then(|at| places.get(at));
        if let Some(place) = place {
            violation.line = place.position.line;
        }
        let file = place.map(|place| printable(&place.path));
        self.push(violation, file, place.map(|place| place.position.document));
    }

    /// Adds a file that is not FBC.
    fn add_file(&mut self, problem: &FileProblem) {
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

    /// Ends the validation of a shard, and counts its documents.
    fn finish(&mut self, validator: ShardValidator, places: &[MetaPlace]) {
        let counts = validator.finish(&mut |violation| self.add(violation, places));
        self.documents.merge(counts);
    }

    /// Returns true if no finding is an error.
    const fn is_sound(&self) -> bool {
        self.errors == 0 && self.serve_errors == 0
    }

    /// Prints the counts and the kept findings as one JSON object, or one line for each finding and then the counts.
    fn print(mut self, json: bool) -> anyhow::Result<()> {
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
    const COLUMNS: &'static [Column<Self>] = &[
        ("SEVERITY", Self::severity),
        ("RULE", |finding| finding.violation.rule.code().to_owned()),
        ("PACKAGE", |finding| finding.violation.package.clone()),
        ("CHANNEL", |finding| finding.violation.channel.clone()),
        ("BUNDLE", |finding| finding.violation.bundle.clone()),
        ("PLACE", Self::place),
        ("FINDING", Self::text),
    ];
}

impl PlacedFinding {
    fn severity(&self) -> String {
        let text = match self.severity {
            Severity::Error => "error",
            Severity::ServeError => "serve-error",
            Severity::Warning => "warning",
        };
        text.to_owned()
    }

    fn place(&self) -> String {
        let line = self.violation.line;
        match (&self.file, self.document) {
            (Some(file), Some(document)) => format!("{file}:{line} (document {document})"),
            (Some(file), None) => file.clone(),
            (None, _) => format!("line {line}"),
        }
    }

    fn text(&self) -> String {
        match self.violation.detail.as_str() {
            "" => self.message.to_owned(),
            detail => format!("{}: {detail}", self.message),
        }
    }
}
