use std::sync::Arc;

use clap::Args;
use inspect::{PlacedFinding, Validation, published, shard_lines};
use model::CatalogName;
use source::Source;
use store::Store;
use terminal::{Exit, print_report, print_text, wrapped};

use crate::args::{self, Access, CatalogAccess};
use crate::table::{Column, Table, print_table};
use crate::wiring;

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
    access: CatalogAccess,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Source as for `render`, such as dir:configs or quay.io/a/b:v1, or the name of a catalog of
    /// the store. A source has a colon or a slash in it.
    #[arg(value_name = "SOURCE|NAME", value_parser = ValidatedCatalog::parse)]
    what: ValidatedCatalog,
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
        ValidatedCatalog::Source(source) => {
            let reader = wiring::sources(&args.access.registries)?;
            reader.validate(&source).await?
        }
        ValidatedCatalog::Published(name) => {
            let store = args.access.store.open_alone(Access::Read).await?;
            validate_published(&store, &name).await?
        }
    };
    print_report(&validation, args.json, print_validation)?;
    Ok(Exit::of_check(validation.servable))
}

async fn validate_published(
    store: &Arc<dyn Store>,
    name: &CatalogName,
) -> anyhow::Result<Validation> {
    let state = published::state(store, name).await?;
    let snapshot = published::snapshot(&state).await?;
    let mut validation = Validation::new();
    for shard in snapshot.shards() {
        validation.add_shard(&shard.name, &shard_lines(&state, shard).await?);
    }
    Ok(validation)
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
    let sum = format!(
        "{}: {} errors, {} errors of opm serve alone, {} warnings; {} documents of OLM, {others} of other schemas",
        if validation.valid { "valid" } else { "invalid" },
        validation.errors,
        validation.serve_errors,
        validation.warnings,
        validation.documents.known,
    );
    print_text(&format!("{rest}{}", wrapped(&sum)))
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
