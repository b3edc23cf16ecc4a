use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use olm::{Day, PackageParser};
use sync::ReadCatalog;
use upgrade::Bounds;
use upgrade::plan::{Installed, OpenShiftMinor, PlanCatalog, PlanInput, UpgradePlan};

use crate::InspectError;

/// State of a cluster and its catalogs, and the question where it can go.
pub struct PlanQuestion<'a> {
    /// Installed operators.
    pub installed: Installed,
    /// Catalogs that the cluster uses now.
    pub from: &'a [ReadCatalog],
    /// Catalogs that it uses after the upgrade.
    pub to: &'a [ReadCatalog],
    /// Version of OpenShift after the upgrade.
    pub cluster: Option<OpenShiftMinor>,
    /// Day for which the support is told.
    pub on: Day,
}

impl PlanQuestion<'_> {
    /// Plans the upgrade. Reads the installed packages, and no others.
    ///
    /// # Errors
    /// Packages that cannot be read, and an answer that takes too much work or is too large.
    pub async fn answer(self, bounds: &Arc<Bounds>) -> Result<UpgradePlan, InspectError> {
        let from = read_packages(self.from, &self.installed).await?;
        let to = read_packages(self.to, &self.installed).await?;
        let installed = self.installed;
        let cluster = self.cluster;
        let on = self.on;
        let bounds = bounds.clone();
        let budget = bounds.budget.clone();
        let plan = move || {
            let from = parse(from, &bounds)?;
            let to = parse(to, &bounds)?;
            let input = PlanInput {
                installed: &installed.operators,
                from: &from,
                to: &to,
                cluster,
                on,
            };
            Ok(UpgradePlan::new(input, &bounds)?)
        };
        work::run(budget, plan).await?
    }
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
) -> Result<Vec<CatalogLines>, InspectError> {
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

fn parse(catalogs: Vec<CatalogLines>, bounds: &Bounds) -> Result<Vec<PlanCatalog>, InspectError> {
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
