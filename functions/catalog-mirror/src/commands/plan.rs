use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fs, io};

use ::upgrade::Bounds;
use ::upgrade::bundle::{CatalogBundles, Contents};
use ::upgrade::plan::{
    BundleStep, Installed, OpenShiftMinor, PlanCatalog, PlanInput, PlannedOperator, UpgradeOrder,
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
use crate::table::{Column, Table, print_table};
use terminal::Exit;
use terminal::{cell, cut, print_report, print_text, printable};

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
    let bounds = Arc::new(Bounds::default());
    let installed = read_installed(&args.installed, &bounds).await?;
    let mut now = catalog::open_all(&args.from, &args.access).await?;
    let then = catalog::open_all(&args.to, &args.access).await?;
    let from = read_packages(&now, &installed).await?;
    let to = read_packages(&then, &installed).await?;
    let notices = installed.notices.clone();
    let question = PlanQuestion {
        installed,
        from,
        to,
        cluster: args.cluster,
        on: args.on.unwrap_or_else(|| SystemTime::now().into()),
    };
    let own = bounds.clone();
    let planned = work::run(bounds.budget.clone(), move || question.plan(&own));
    let mut plan = planned.await??;
    if args.bundles {
        now.extend(then);
        let mut comparison = BundleComparison {
            catalogs: now,
            images: bundle::images(&args.access)?,
            packages: HashMap::new(),
            compared: HashMap::new(),
            last: None,
        };
        for row in &mut plan.operators {
            let compared = comparison.compare(row, &bounds).await;
            compared.with_context(|| {
                format!("cannot compare the bundles of {}", row.installed.package)
            })?;
        }
    }
    for notice in &notices {
        eprintln!("notice: {}", printable(notice));
    }
    work::run(bounds.budget.clone(), move || {
        if args.imageset {
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
        let text = if path == Path::new("-") {
            io::read_to_string(io::stdin())
        } else {
            fs::read_to_string(&path)
        };
        let place = || path.display().to_string();
        Installed::parse(&text.with_context(place)?, &own.budget).with_context(place)
    });
    read.await?
}

/// Lines of the installed packages of a catalog.
struct CatalogLines {
    name: String,
    /// Lines by package.
    packages: BTreeMap<String, Vec<u8>>,
}

/// Reads the installed packages of catalogs, and no others.
async fn read_packages(
    catalogs: &[ReadCatalog],
    installed: &Installed,
) -> anyhow::Result<Vec<CatalogLines>> {
    let wanted: HashSet<&str> = installed
        .operators
        .iter()
        .map(|one| one.package.as_str())
        .collect();
    let mut read: BTreeMap<&str, CatalogLines> = BTreeMap::new();
    for catalog in catalogs {
        let mut packages = BTreeMap::new();
        for name in catalog.packages().filter(|name| wanted.contains(name)) {
            if let Some(lines) = catalog.lines(name).await? {
                packages.insert(name.to_owned(), lines);
            }
        }
        let name = catalog.source().to_owned();
        // A catalog that is named twice counts once.
        read.insert(catalog.source(), CatalogLines { name, packages });
    }
    Ok(read.into_values().collect())
}

/// State of a cluster and its catalogs, before they are parsed.
struct PlanQuestion {
    installed: Installed,
    from: Vec<CatalogLines>,
    to: Vec<CatalogLines>,
    cluster: Option<OpenShiftMinor>,
    on: Day,
}

impl PlanQuestion {
    fn plan(self, bounds: &Bounds) -> anyhow::Result<UpgradePlan> {
        let from = parse(self.from, bounds)?;
        let to = parse(self.to, bounds)?;
        let input = PlanInput {
            installed: &self.installed.operators,
            from: &from,
            to: &to,
            cluster: self.cluster,
            on: self.on,
        };
        Ok(UpgradePlan::new(input, bounds)?)
    }
}

fn parse(catalogs: Vec<CatalogLines>, bounds: &Bounds) -> anyhow::Result<Vec<PlanCatalog>> {
    let mut parsed = Vec::new();
    for CatalogLines { name, packages } in catalogs {
        let mut catalog = PlanCatalog {
            name,
            packages: BTreeMap::new(),
        };
        for (package, lines) in packages {
            bounds.budget.charge_bytes(lines.len())?;
            let content = PackageParser::parse(&lines);
            catalog.packages.insert(package, content);
        }
        parsed.push(catalog);
    }
    Ok(parsed)
}

/// Comparison of the bundles of steps, each pair of them once.
struct BundleComparison {
    catalogs: Vec<ReadCatalog>,
    images: Sources,
    /// Bundles of all catalogs by package.
    packages: HashMap<String, Arc<CatalogBundles>>,
    compared: HashMap<BundlePair, BundleCounts>,
    /// Bundle that was read last, from which most steps go on.
    last: Option<ReadBundle>,
}

/// Two bundles of a package, by their names or versions.
#[derive(Clone, PartialEq, Eq, Hash)]
struct BundlePair {
    package: String,
    old: String,
    new: String,
}

/// Numbers of changes from one bundle to another.
#[derive(Clone, Copy)]
struct BundleCounts {
    unsafe_changes: usize,
    gained_permissions: usize,
}

struct ReadBundle {
    package: String,
    /// Name or version.
    wanted: String,
    contents: Arc<Contents>,
}

impl BundleComparison {
    /// Adds the changes by each bundle on the way of an operator that a catalog has.
    async fn compare(&mut self, row: &mut PlannedOperator, bounds: &Bounds) -> anyhow::Result<()> {
        let package = row.installed.package.clone();
        let known = self.bundles(&package).await?;
        let mut steps: Vec<UpgradeStep> = row.way().collect();
        steps.retain(|step| known.has(wanted(step)));
        for pair in steps.windows(2) {
            let [old, new] = pair else { continue };
            let pair = BundlePair {
                package: package.clone(),
                old: wanted(old).to_owned(),
                new: wanted(new).to_owned(),
            };
            let counts = match self.compared.get(&pair) {
                Some(counts) => *counts,
                None => self.count(pair, &known).await?,
            };
            let step = BundleStep {
                from: old.label().to_owned(),
                to: new.label().to_owned(),
                unsafe_changes: counts.unsafe_changes,
                gained_permissions: counts.gained_permissions,
            };
            bounds.answer(size_of::<BundleStep>() + step.from.len() + step.to.len())?;
            row.bundles.push(step);
        }
        Ok(())
    }

    /// Returns the bundles of a package in all catalogs.
    async fn bundles(&mut self, package: &str) -> anyhow::Result<Arc<CatalogBundles>> {
        if let Some(known) = self.packages.get(package) {
            return Ok(known.clone());
        }
        let mut lines = Vec::new();
        for catalog in &self.catalogs {
            lines.extend(catalog.lines(package).await?.unwrap_or_default());
        }
        let bundles = Arc::new(bundle::named_bundles(lines).await?);
        self.packages.insert(package.to_owned(), bundles.clone());
        Ok(bundles)
    }

    /// Compares two bundles.
    async fn count(
        &mut self,
        pair: BundlePair,
        known: &CatalogBundles,
    ) -> anyhow::Result<BundleCounts> {
        let old = self.read(&pair.package, &pair.old, known).await?;
        let new = self.read(&pair.package, &pair.new, known).await?;
        let difference = bundle::difference(old, new).await?;
        let counts = BundleCounts {
            unsafe_changes: difference.unsafe_changes.len(),
            gained_permissions: difference.gained_permissions(),
        };
        self.compared.insert(pair, counts);
        Ok(counts)
    }

    /// Reads a bundle of a package.
    async fn read(
        &mut self,
        package: &str,
        wanted: &str,
        known: &CatalogBundles,
    ) -> anyhow::Result<Arc<Contents>> {
        if let Some(last) = &self.last
            && last.package == package
            && last.wanted == wanted
        {
            return Ok(last.contents.clone());
        }
        let found = known
            .find(wanted)?
            .context("the catalogs have the bundle")?;
        let images = self.images.clone();
        let contents = Arc::new(bundle::of_catalog(found, || Ok(images)).await?);
        self.last = Some(ReadBundle {
            package: package.to_owned(),
            wanted: wanted.to_owned(),
            contents: contents.clone(),
        });
        Ok(contents)
    }
}

/// Returns the name of the bundle of a step, or its version if only that is known.
fn wanted(step: &UpgradeStep) -> &str {
    if step.bundle.is_empty() {
        step.label()
    } else {
        &step.bundle
    }
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
            if row.verdict == UpgradeOrder::NoWay {
                return String::new();
            }
            cut(row.last.label(), 12)
        }),
        ("SUPPORT", |row| row.target_support.to_string()),
    ];
}
