use ::upgrade::Bounds;
use ::upgrade::plan::{ChannelWay, GraphFormat, PackageGraph, PlanError, Ways, draw};
use clap::Args;
use model::text::did_you_mean;
use olm::{Package, PackageParser, UpgradeStep};

use crate::args::CatalogAccess;
use crate::catalog::{self, CATALOG_HELP};
use crate::table::{Column, Table, print_table};
use terminal::Exit;
use terminal::{cell, print_json, print_report, print_text, printable};

#[derive(Debug, Args)]
#[command(after_help = format!("\
The steps are the fewest by `replaces`, `skips` and `skipRange`, in each channel by itself. Of several ways with as many steps it is \
the one whose first steps lead to the newest versions. FROM need not be in the catalog any more.

{CATALOG_HELP}

Examples:
  catalog-mirror upgrade --store /var/lib/catalog-mirror operatorhubio etcd 0.9.0
  catalog-mirror upgrade https://mirror.example/catalogs/operatorhubio etcd 0.9.0 0.9.4
  catalog-mirror upgrade dir:configs etcd etcdoperator.v0.9.0 --json | jq '.channels[].steps'

Exit codes: 0 a channel leads there, 1 none does or the command failed, 2 wrong command line."))]
pub(crate) struct UpgradeArgs {
    #[command(flatten)]
    access: CatalogAccess,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Catalog of the store or of a mirror, or a source.
    #[arg(value_name = "CATALOG")]
    catalog: String,
    /// Name of the package.
    #[arg(value_name = "PACKAGE")]
    package: String,
    /// Version or bundle that is installed.
    #[arg(value_name = "FROM")]
    from: String,
    /// Version or bundle to reach. Default: the head of each channel.
    #[arg(value_name = "TO")]
    to: Option<String>,
}

pub(crate) async fn run(args: UpgradeArgs) -> anyhow::Result<Exit> {
    let lines = catalog::package(&args.catalog, &args.access, &args.package).await?;
    let bounds = Bounds::default();
    work::run(bounds.budget.clone(), move || {
        let package = parse(&lines, &bounds)?;
        let to = args.to.as_deref();
        let ways = Ways::new(&args.package, &package, &args.from, to, &bounds);
        let ways = ways.map_err(|error| in_catalog(error, &args.catalog))?;
        print_report(&ways, args.json, |ways| print_table(&ways.channels))?;
        Ok(Exit::of_check(ways.is_possible()))
    })
    .await?
}

/// Parses the lines of a package.
fn parse(lines: &[u8], bounds: &Bounds) -> anyhow::Result<Package> {
    bounds.budget.charge_bytes(lines.len())?;
    Ok(PackageParser::parse(lines))
}

/// Names the catalog in the error of an answer that takes too much work.
fn in_catalog(error: PlanError, catalog: &str) -> anyhow::Error {
    let is_exceeded = matches!(error, PlanError::Exceeded { .. });
    let error = anyhow::Error::new(error);
    if is_exceeded {
        return error.context(format!("catalog {}", printable(catalog)));
    }
    error
}

impl Table for ChannelWay {
    const COLUMNS: &'static [Column<Self>] = &[
        ("CHANNEL", |way| way.channel.clone()),
        ("STEPS", |way| {
            let steps = way.steps.as_ref();
            steps.map_or("-".to_owned(), |steps| steps.len().to_string())
        }),
        ("WAY", |way| match (&way.steps, &way.reason) {
            (Some(steps), _) if steps.is_empty() => "is installed".to_owned(),
            (Some(steps), _) => UpgradeStep::labels(steps),
            (None, reason) => cell(reason.as_ref()),
        }),
    ];
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
Upgrades are drawn from the old to the new bundle, those of a range to each entry whose version is in it, as `opm alpha \
render-graph` does. The text form draws chains of `replaces` as `git log --graph` draws branches.

{CATALOG_HELP}

Examples:
  catalog-mirror graph --store /var/lib/catalog-mirror operatorhubio etcd
  catalog-mirror graph dir:configs etcd --channel stable --format mermaid
  catalog-mirror graph https://mirror.example/catalogs/operatorhubio etcd --format dot | dot -Tsvg > etcd.svg"))]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    access: CatalogAccess,
    /// Only this channel.
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// Format of the graph.
    #[arg(long, value_enum, default_value_t)]
    format: GraphFormat,
    /// Print the entries of the channels as JSON instead of a drawing.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Catalog of the store or of a mirror, or a source.
    #[arg(value_name = "CATALOG")]
    catalog: String,
    /// Name of the package.
    #[arg(value_name = "PACKAGE")]
    package: String,
}

pub(crate) async fn run_graph(args: GraphArgs) -> anyhow::Result<()> {
    let lines = catalog::package(&args.catalog, &args.access, &args.package).await?;
    let bounds = Bounds::default();
    work::run(bounds.budget.clone(), move || {
        let mut package = parse(&lines, &bounds)?;
        if let Some(wanted) = &args.channel {
            let similar = did_you_mean(wanted, package.channels.keys().map(String::as_str));
            package.channels.retain(|name, _| name == wanted);
            let is_there = !package.channels.is_empty();
            anyhow::ensure!(
                is_there,
                "package {} has no channel {wanted:?}{similar}",
                args.package
            );
        }
        if args.json {
            return print_json(&PackageGraph::new(&args.package, &package));
        }
        let drawn = draw(args.format, &args.package, &package, &bounds);
        print_text(&drawn.map_err(|error| in_catalog(error, &args.catalog))?)
    })
    .await?
}
