use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use ::upgrade::bundle::Contents;
use ::upgrade::plan::{
    BundleStep, Installed, OpenShiftMinor, PackageSet, PlanInput, PlannedOperator, UpgradeOrder,
    UpgradePlan, wrapped,
};
use anyhow::Context;
use clap::Args;
use olm::{Day, PackageParser, UpgradeStep};
use source::Sources;
use sync::ReadCatalog;

use crate::args::CatalogAccess;
use crate::catalog::{self, CATALOG_HELP};
use crate::commands::bundle;
use crate::exit::Exit;
use crate::output::{
    Column, Table, cell, cut, print_report, print_table, print_text, print_yaml, printable,
};

#[derive(Debug, Args)]
#[command(after_help = format!("\
INSTALLED is what this command prints, in YAML or JSON, or a list of lines `package version [channel]`, or - for standard input:
  kubectl get subscriptions.operators.coreos.com,clusterserviceversions,clusterextensions -A -o yaml

The verdict is `cluster first`, `operator first` with the version that it needs, `either`, or `no way`. Steps are those of OLM v0. \
With --cluster, olm.maxOpenShiftVersion counts as OLM v0 counts it. SUPPORT is the time that is left of the last phase of the version \
that is installed in the end, from documents of io.openshift.operators.lifecycles.v1alpha1. An ImageSetConfiguration in place of a \
catalog answers if its selection holds the ways.

{CATALOG_HELP}

Examples:
  catalog-mirror plan installed.yaml --from redhat-4-20 --to redhat-4-21 --cluster 4.21
  kubectl get subscriptions.operators.coreos.com,clusterserviceversions -A -o json |
    catalog-mirror plan - --from redhat-4-20 --to imageset.yaml --json | jq '.operators[] | select(.verdict == \"no-way\")'
  catalog-mirror plan installed.yaml --from redhat-4-20 --to redhat-4-21 --imageset > imageset.yaml

Exit codes: 0 each operator has a way, 1 one has none or the command failed, 2 wrong command line."))]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    access: CatalogAccess,
    /// Catalog, or ImageSetConfiguration, that the cluster uses now. May be repeated.
    #[arg(
        long = "from",
        id = "catalogs_now",
        required = true,
        value_name = "CATALOG|FILE"
    )]
    from: Vec<String>,
    /// Catalog, or ImageSetConfiguration, that it uses after the upgrade. May be repeated.
    #[arg(
        long = "to",
        id = "catalogs_then",
        required = true,
        value_name = "CATALOG|FILE"
    )]
    to: Vec<String>,
    /// Version of OpenShift after the upgrade, such as 4.21.
    #[arg(long, value_name = "VERSION")]
    cluster: Option<OpenShiftMinor>,
    /// Day for which the support is told. Default: today.
    #[arg(long, value_name = "YYYY-MM-DD")]
    on: Option<Day>,
    /// Print JSON instead of a table.
    #[arg(long, conflicts_with = "imageset")]
    json: bool,
    /// Print an ImageSetConfiguration with the steps and the heads instead of a table.
    #[arg(long)]
    imageset: bool,
    /// Compare the bundles of each step as `bundle diff` does, and remark unsafe changes and gained
    /// permissions.
    #[arg(long)]
    bundles: bool,
    /// Installed operators.
    #[arg(value_name = "INSTALLED")]
    installed: PathBuf,
}

pub(crate) async fn run(args: PlanArgs) -> anyhow::Result<Exit> {
    let place = || args.installed.display().to_string();
    let text = if args.installed == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(&args.installed)
    };
    let installed = Installed::parse(&text.with_context(place)?).with_context(place)?;
    let names: BTreeSet<&str> = installed
        .operators
        .iter()
        .map(|one| one.package.as_str())
        .collect();
    let mut now = catalog::open_all(&args.from, &args.access).await?;
    let then = catalog::open_all(&args.to, &args.access).await?;
    let (from, to) = (
        packages(&now, &names).await?,
        packages(&then, &names).await?,
    );
    let mut plan = UpgradePlan::new(PlanInput {
        installed: &installed.operators,
        from: &from,
        to: &to,
        cluster: args.cluster,
        on: args.on.unwrap_or_else(|| SystemTime::now().into()),
    });
    if args.bundles {
        now.extend(then);
        let images = bundle::images(&args.access)?;
        for row in &mut plan.operators {
            let compared = compare(row, &now, &images).await;
            compared.with_context(|| {
                format!("cannot compare the bundles of {}", row.installed.package)
            })?;
        }
    }
    for notice in &installed.notices {
        eprintln!("notice: {}", printable(notice));
    }
    if args.imageset {
        print_yaml(&[plan.image_set()])?;
    } else {
        print_report(&plan, args.json, print_plan)?;
    }
    Ok(Exit::of_check(plan.is_possible()))
}

/// Reads the named packages of catalogs, and no others.
async fn packages(catalogs: &[ReadCatalog], names: &BTreeSet<&str>) -> anyhow::Result<PackageSet> {
    let mut packages = PackageSet::new();
    for catalog in catalogs {
        for name in names {
            if let Some(lines) = catalog.lines(name).await? {
                let found = packages.entry((*name).to_owned()).or_default();
                found.insert(catalog.source().to_owned(), PackageParser::parse(&lines));
            }
        }
    }
    Ok(packages)
}

/// Adds the changes by each bundle on the way of an operator that a catalog has.
async fn compare(
    row: &mut PlannedOperator,
    catalogs: &[ReadCatalog],
    images: &Sources,
) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for catalog in catalogs {
        lines.extend(
            catalog
                .lines(&row.installed.package)
                .await?
                .unwrap_or_default(),
        );
    }
    let mut last: Option<(String, Contents)> = None;
    for step in row.way() {
        let to = step.label().to_owned();
        let wanted = if step.bundle.is_empty() {
            &to
        } else {
            &step.bundle
        };
        let Some(new) = bundle::of_lines(&|| Ok(images.clone()), &lines, wanted).await? else {
            continue;
        };
        if let Some((from, old)) = last {
            let difference = old.difference(&new);
            row.bundles.push(BundleStep {
                from,
                to: to.clone(),
                unsafe_changes: difference.unsafe_changes.len(),
                gained_permissions: difference.gained_permissions(),
            });
        }
        last = Some((to, new));
    }
    Ok(())
}

/// Prints a row for each operator, then the remarks, then the numbers of verdicts.
fn print_plan(plan: &UpgradePlan) -> anyhow::Result<()> {
    print_table(&plan.operators)?;
    let notes = plan.operators.iter().flat_map(|row| {
        let package = &row.installed.package;
        let notes = row.notes().into_iter();
        notes.map(move |note| wrapped(&printable(&format!("{package}: {note}"))))
    });
    print_text(&format!(
        "{}{}\n",
        notes.collect::<String>(),
        plan.summary()
    ))
}

/// The table fits into 100 columns.
impl Table for PlannedOperator {
    const COLUMNS: &'static [Column<Self>] = &[
        ("PACKAGE", |row| cut(&row.installed.package, 26)),
        ("INSTALLED", |row| cut(row.installed.step().label(), 12)),
        ("VERDICT", |row| row.verdict.as_str().to_owned()),
        ("FIRST TO", |row| cut(&cell(row.at_least.as_ref()), 12)),
        ("THEN TO", |row| {
            let last = (row.verdict != UpgradeOrder::NoWay).then(|| row.last());
            cut(last.as_ref().map_or("", UpgradeStep::label), 12)
        }),
        ("SUPPORT", |row| row.target_support.to_string()),
    ];
}
