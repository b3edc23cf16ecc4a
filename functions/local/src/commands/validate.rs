use ::render::{MetaPlace, RenderError};
use clap::Args;
use model::CatalogName;
use olm::{FilePlace, PlacedFinding, ShardValidator, Validation};
use publish::RenderSink;
use source::Source;
use store::Store;

use super::render::read_source;
use crate::{
    args::{self, Access, CatalogAccess},
    exit::Exit,
    output::{Column, Table, print_report, print_table, print_text, printable},
    published,
};

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
    let mut validation = Validation::default();
    let rendering = match sink.finish() {
        Ok(rendering) => rendering,
        // A document above a limit of this program may be valid, so that is an error of the command.
        Err(RenderError::Invalid { problems }) if problems.iter().all(|problem| problem.limit.is_none()) => {
            problems
                .iter()
                .for_each(|problem| validation.add_file(&problem.path, &problem.reason));
            return Ok(validation);
        }
        Err(error) => return Err(error.into()),
    };
    for shard in rendering.shards() {
        let mut validator = ShardValidator::new(&shard.name, fbc::is_yaml);
        rendering.read_lines(shard, |lines| {
            validator.push(lines, &mut |violation| validation.add(violation, place(&shard.places)));
        })?;
        validation.finish(validator, place(&shard.places));
    }
    Ok(validation)
}

async fn validate_published(store: &dyn Store, name: &CatalogName) -> anyhow::Result<Validation> {
    let (_, snapshot) = published::state(store, name).await?;
    let mut validation = Validation::default();
    for shard in snapshot.shards() {
        let lines = published::lines(store, shard).await?;
        let mut validator = ShardValidator::new(&shard.name, fbc::is_yaml);
        validator.push(&lines, &mut |violation| validation.add(violation, |_| None));
        validation.finish(validator, |_| None);
    }
    Ok(validation)
}

/// Returns the place of a document in the files of the source.
fn place(places: &[MetaPlace]) -> impl Fn(usize) -> Option<FilePlace> + '_ {
    |number| {
        places.get(number).map(|place| FilePlace {
            file: printable(&place.path),
            document: place.position.document,
            line: place.position.line,
        })
    }
}

/// Prints one line for each kept finding, and then the counts.
fn print_validation(validation: &Validation) -> anyhow::Result<()> {
    if !validation.findings.is_empty() {
        print_table(&validation.findings)?;
    }
    print_text(&validation.summary())
}

impl Table for PlacedFinding {
    const COLUMNS: &'static [Column<Self>] = &[
        ("SEVERITY", |finding| finding.severity.to_string()),
        ("RULE", |finding| finding.violation.rule.code().to_owned()),
        ("PACKAGE", |finding| finding.violation.package.clone()),
        ("CHANNEL", |finding| finding.violation.channel.clone()),
        ("BUNDLE", |finding| finding.violation.bundle.clone()),
        ("PLACE", PlacedFinding::place),
        ("FINDING", |finding| finding.violation.text()),
    ];
}
