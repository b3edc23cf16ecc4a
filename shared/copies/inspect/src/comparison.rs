use std::collections::HashMap;
use std::sync::Arc;

use olm::UpgradeStep;
use sync::ReadCatalog;
use upgrade::Bounds;
use upgrade::bundle::{CatalogBundles, Contents};
use upgrade::plan::{BundleStep, PlannedOperator};

use crate::{BundleReader, InspectError, bundle_difference, named_bundles};

/// Comparison of the bundles of steps, each pair of them once.
pub struct BundleComparison {
    catalogs: Vec<ReadCatalog>,
    reader: BundleReader,
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
    /// Creates a comparison of bundles that one of the catalogs has.
    pub fn new(catalogs: Vec<ReadCatalog>, reader: BundleReader) -> Self {
        Self {
            catalogs,
            reader,
            packages: HashMap::new(),
            compared: HashMap::new(),
            last: None,
        }
    }

    /// Adds the changes by each bundle on the way of an operator that a catalog has.
    ///
    /// # Errors
    /// A bundle that cannot be read or compared, and an answer that is too large. Names the package.
    pub async fn compare(
        &mut self,
        row: &mut PlannedOperator,
        bounds: &Bounds,
    ) -> Result<(), InspectError> {
        let package = row.installed.package.clone();
        let added = self.add_steps(row, bounds).await;
        added.map_err(|error| error.part(format!("cannot compare the bundles of {package}")))
    }

    async fn add_steps(
        &mut self,
        row: &mut PlannedOperator,
        bounds: &Bounds,
    ) -> Result<(), InspectError> {
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
    async fn bundles(&mut self, package: &str) -> Result<Arc<CatalogBundles>, InspectError> {
        if let Some(known) = self.packages.get(package) {
            return Ok(known.clone());
        }
        let mut lines = Vec::new();
        for catalog in &self.catalogs {
            lines.extend(catalog.lines(package).await?.unwrap_or_default());
        }
        let bundles = Arc::new(named_bundles(lines).await?);
        self.packages.insert(package.to_owned(), bundles.clone());
        Ok(bundles)
    }

    /// Compares two bundles.
    async fn count(
        &mut self,
        pair: BundlePair,
        known: &CatalogBundles,
    ) -> Result<BundleCounts, InspectError> {
        let old = self.read(&pair.package, &pair.old, known).await?;
        let new = self.read(&pair.package, &pair.new, known).await?;
        let difference = bundle_difference(old, new).await?;
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
    ) -> Result<Arc<Contents>, InspectError> {
        if let Some(last) = &self.last
            && last.package == package
            && last.wanted == wanted
        {
            return Ok(last.contents.clone());
        }
        let Some(found) = known.find(wanted)? else {
            return Err(InspectError::refused(format!(
                "the catalogs have no bundle {wanted}"
            )));
        };
        let contents = Arc::new(self.reader.of_catalog(found).await?);
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
