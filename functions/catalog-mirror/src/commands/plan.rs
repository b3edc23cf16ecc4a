use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fs, io};

use ::upgrade::Bounds;
use ::upgrade::plan::{Installed, OpenShiftMinor, PlannedOperator, UpgradeOrder, UpgradePlan};
use anyhow::Context;
use clap::Args;
use inspect::{BundleComparison, PlanQuestion, SourceName};
use olm::Day;

use crate::args::CatalogAccess;
use crate::catalog::{self, CATALOG_HELP};
use crate::table::{Column, Table, print_table};
use crate::wiring;
use terminal::{Exit, cell, print_report, print_text, printable, remark, wrapped};

#[derive(Debug, Args)]
#[command(after_help = format!("\
INSTALLED is what this command prints, in YAML or JSON, or a list of lines `package version [channel]`, or - for standard input. In a \
list, the name of a ClusterServiceVersion may stand in place of the version, or alone:
  kubectl get subscriptions.operators.coreos.com,clusterserviceversions,clusterextensions -A -o yaml

The verdict is `stays` for what needs nothing, `cluster first`, `operator first` with the version that it needs, `either`, or `no way`. \
Steps are those of OLM v0. Of several catalogs with a package, the one counts that the Subscription or ClusterExtension names: by the name \
of the catalog, or by one that `manifests` or oc-mirror v2 makes for it; --source says it otherwise. \
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
    /// Catalog of a CatalogSource or ClusterCatalog, where several catalogs have a package and the
    /// name does not tell it. May be repeated.
    #[arg(long, value_name = "NAME=CATALOG")]
    source: Vec<SourceName>,
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
    let bounds = Arc::new(Bounds::default());
    let installed = read_installed(&args.installed, &bounds).await?;
    let mut now = catalog::open_all(&args.from, &args.access).await?;
    let then = catalog::open_all(&args.to, &args.access).await?;
    let notices = installed.notices.clone();
    let question = PlanQuestion {
        installed,
        from: &now,
        to: &then,
        sources: &args.source,
        cluster: args.cluster,
        on: args.on.unwrap_or_else(|| SystemTime::now().into()),
    };
    let mut plan = question.answer(&bounds).await?;
    if args.bundles {
        now.extend(then);
        let mut comparison = BundleComparison::new(now, wiring::bundle_reader(&args.access)?);
        for row in &mut plan.operators {
            comparison.compare(row, &bounds).await?;
        }
    }
    for notice in &notices {
        remark(&format!("notice: {notice}"));
    }
    work::run(bounds.budget.clone(), move || {
        if args.imageset {
            for left_out in plan.left_out() {
                remark(&format!("notice: {left_out}"));
            }
            terminal::print_text(&carry::yaml(&[plan.image_set()])?)?;
        } else {
            if args.json {
                plan.count_steps(&bounds)?;
            }
            print_report(&plan, args.json, print_plan)?;
        }
        Ok(Exit::of_check(plan.is_possible()))
    })
    .await?
}

/// Reads the installed operators from a file or standard input.
async fn read_installed(path: &Path, bounds: &Arc<Bounds>) -> anyhow::Result<Installed> {
    let path = path.to_owned();
    let own = bounds.clone();
    let read = work::run(bounds.budget.clone(), move || {
        let is_input = path == Path::new("-");
        let place = if is_input {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        let text = if is_input {
            io::read_to_string(io::stdin())
        } else {
            fs::read_to_string(&path)
        };
        let text = text.with_context(|| place.clone())?;
        Installed::parse(&text, &own.budget).context(place)
    });
    read.await?
}

/// Prints a row for each operator, then the remarks, then the numbers of verdicts.
fn print_plan(plan: &UpgradePlan) -> anyhow::Result<()> {
    print_table(&plan.operators)?;
    let notes = plan.operators.iter().flat_map(|row| {
        let label = &row.label;
        let notes = row.notes().into_iter();
        notes.map(move |note| wrapped(&printable(&format!("{label}: {note}"))))
    });
    let notes: String = notes.collect();
    print_text(&format!("{notes}{}", wrapped(&plan.summary())))
}

impl Table for PlannedOperator {
    const COLUMNS: &'static [Column<Self>] = &[
        ("PACKAGE", |row| row.label.clone()),
        ("INSTALLED", |row| row.installed.step().label().to_owned()),
        ("VERDICT", |row| row.verdict.as_str().to_owned()),
        ("FIRST TO", |row| cell(row.at_least.as_ref())),
        ("THEN TO", |row| {
            if matches!(row.verdict, UpgradeOrder::NoWay | UpgradeOrder::Stays) {
                return String::new();
            }
            row.last.label().to_owned()
        }),
        ("SUPPORT", |row| row.target_support.to_string()),
    ];
}
