use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use olm::{Day, PackageParser};
use sync::ReadCatalog;
use upgrade::Bounds;
use upgrade::plan::{Installed, OpenShiftMinor, PlanCatalog, PlanInput, UpgradePlan};

use crate::cluster_names::cluster_names;
use crate::{InspectError, SourceName};

/// State of a cluster and its catalogs, and the question where it can go.
pub struct PlanQuestion<'a> {
    /// Installed operators.
    pub installed: Installed,
    /// Catalogs that the cluster uses now.
    pub from: &'a [ReadCatalog],
    /// Catalogs that it uses after the upgrade.
    pub to: &'a [ReadCatalog],
    /// Catalogs of CatalogSources and ClusterCatalogs whose names do not tell them.
    pub sources: &'a [SourceName],
    /// Version of OpenShift after the upgrade.
    pub cluster: Option<OpenShiftMinor>,
    /// Day for which the support is told.
    pub on: Day,
}

impl PlanQuestion<'_> {
    /// Plans the upgrade. Reads the installed packages, and no others unless the package of an
    /// operator is not known.
    ///
    /// # Errors
    /// A source of which the catalog is not there, packages that cannot be read, and an answer that takes too much work or is too large.
    pub async fn answer(self, bounds: &Arc<Bounds>) -> Result<UpgradePlan, InspectError> {
        let all: Vec<&ReadCatalog> = self.from.iter().chain(self.to).collect();
        for source in self.sources {
            source.check(&all)?;
        }
        let from = read_packages(self.from, &self.installed, self.sources).await?;
        let to = read_packages(self.to, &self.installed, self.sources).await?;
        let mut installed = self.installed;
        let cluster = self.cluster;
        let on = self.on;
        let bounds = bounds.clone();
        let budget = bounds.budget.clone();
        work::run(budget, move || {
            let from = parse(from, &bounds)?;
            let to = parse(to, &bounds)?;
            installed.find_packages(&from);
            installed.find_packages(&to);
            let input = PlanInput {
                installed: &installed.operators,
                from: &from,
                to: &to,
                cluster,
                on,
            };
            Ok(UpgradePlan::new(input, &bounds)?)
        })
        .await?
    }
}

/// Lines of the installed packages of a catalog.
struct CatalogLines {
    name: String,
    source: String,
    cluster_names: BTreeSet<String>,
    /// Lines by package.
    packages: BTreeMap<String, Vec<u8>>,
}

/// Reads the installed packages of catalogs, and no others unless an operator is known by the name
/// of its bundle alone. A catalog that is named twice counts once.
async fn read_packages(
    catalogs: &[ReadCatalog],
    installed: &Installed,
    named: &[SourceName],
) -> Result<Vec<CatalogLines>, InspectError> {
    let operators = installed.operators.iter();
    let wanted: HashSet<&str> = operators.map(|one| one.package.as_str()).collect();
    let bundles: HashSet<&str> = installed.bundles_without_package().collect();
    let mut known = HashSet::new();
    let mut read = Vec::new();
    for catalog in catalogs {
        if !known.insert([catalog.name(), catalog.source().into()]) {
            continue;
        }
        let mut packages = BTreeMap::new();
        for name in catalog.packages() {
            let is_wanted = wanted.contains(name);
            if !is_wanted && bundles.is_empty() {
                continue;
            }
            let Some(lines) = catalog.lines(name).await? else {
                continue;
            };
            if is_wanted || has_bundle(&lines, &bundles) {
                packages.insert(name.to_owned(), lines);
            }
        }
        let mut names = cluster_names(catalog);
        let given = named.iter().filter(|one| one.names(catalog));
        names.extend(given.map(|one| one.source.clone()));
        read.push(CatalogLines {
            name: catalog.name().into_owned(),
            source: catalog.source().to_owned(),
            cluster_names: names,
            packages,
        });
    }
    Ok(read)
}

/// Returns true if a package has one of the bundles.
fn has_bundle(lines: &[u8], bundles: &HashSet<&str>) -> bool {
    let package = PackageParser::parse(lines);
    let mut names = package.bundles.keys();
    names.any(|name| bundles.contains(name.as_str()))
}

fn parse(catalogs: Vec<CatalogLines>, bounds: &Bounds) -> Result<Vec<PlanCatalog>, InspectError> {
    let mut parsed = Vec::new();
    for catalog in catalogs {
        let mut packages = BTreeMap::new();
        for (package, lines) in catalog.packages {
            bounds.budget.charge_bytes(lines.len())?;
            packages.insert(package, PackageParser::parse(&lines));
        }
        parsed.push(PlanCatalog {
            name: catalog.name,
            source: catalog.source,
            cluster_names: catalog.cluster_names,
            packages,
        });
    }
    Ok(parsed)
}
