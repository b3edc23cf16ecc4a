//! Packages of catalogs, with what the operators of a plan share: each channel is read once.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use model::text::line;
use olm::{BundleVersions, EntryHits, FirstSteps, Package, UpgradeGraph, UpgradeStep};
use work::{Budget, OverBudget};

use crate::plan::ways::bundle_names;
use crate::plan::{InstalledOperator, OpenShiftMinor, PlanCatalog, PlanError};

/// Longest reason for which OLM v0 refuses a channel, in characters. It names all heads.
const FAULT_CHARS: usize = 2000;

/// Packages by name, each with the catalogs that have it.
pub(super) type KnownPackages<'a> = HashMap<&'a str, Vec<KnownPackage<'a>>>;

/// Package of a catalog.
pub(super) struct KnownPackage<'a> {
    pub(super) catalog: &'a PlanCatalog,
    name: &'a str,
    pub(super) package: &'a Package,
    versions: BundleVersions<'a>,
    channels: RefCell<BTreeMap<&'a str, Rc<KnownChannel<'a>>>>,
    /// Names of all bundles that the package has or names.
    names: OnceCell<HashSet<&'a str>>,
}

/// Channel of a package as OLM v0 reads it.
pub(super) struct KnownChannel<'a> {
    pub(super) name: &'a str,
    /// Steps of the channel, or the reason for which OLM v0 refuses it.
    pub(super) steps: Result<FirstSteps<'a>, String>,
    catalog: &'a PlanCatalog,
    package_name: &'a str,
    package: &'a Package,
    /// Entries that lead to the head of a channel after the upgrade, by the source of its catalog, the
    /// name of the catalog and that of the channel.
    leading: RefCell<HashMap<[&'a str; 3], Rc<LeadingEntries>>>,
}

/// Entries from which the steps after the upgrade lead to the head.
pub(super) struct LeadingEntries {
    /// All of them.
    pub(super) all: EntryHits,
    /// Entries that do not stop the upgrade of the cluster.
    pub(super) fitting: EntryHits,
}

/// Reads the packages of catalogs.
pub(super) fn known_packages(catalogs: &[PlanCatalog]) -> KnownPackages<'_> {
    let mut known = KnownPackages::new();
    for catalog in catalogs {
        for (name, package) in &catalog.packages {
            let found = known.entry(name).or_default();
            found.push(KnownPackage {
                catalog,
                name,
                package,
                versions: BundleVersions::new(package),
                channels: RefCell::default(),
                names: OnceCell::new(),
            });
        }
    }
    known
}

impl<'a> KnownPackage<'a> {
    /// Returns a channel; `None` if the package does not have it.
    pub(super) fn channel(
        &self,
        name: &str,
        budget: &Budget,
    ) -> Result<Option<Rc<KnownChannel<'a>>>, PlanError> {
        if let Some(known) = self.channels.borrow().get(name) {
            return Ok(Some(known.clone()));
        }
        let Some((name, channel)) = self.package.channels.get_key_value(name) else {
            return Ok(None);
        };
        let mut known = KnownChannel {
            name,
            steps: Err(String::new()),
            catalog: self.catalog,
            package_name: self.name,
            package: self.package,
            leading: RefCell::default(),
        };
        known.steps = match channel.olm_v0_order() {
            Ok(order) => {
                let graph = UpgradeGraph::in_order(self.package, channel, &order, budget);
                let steps = graph.and_then(|graph| FirstSteps::new(graph, budget));
                Ok(steps.map_err(|over| known.exceeded(over))?)
            }
            Err(fault) => Err(line(&fault.to_string(), FAULT_CHARS)),
        };
        let known = Rc::new(known);
        self.channels.borrow_mut().insert(name, known.clone());
        Ok(Some(known))
    }

    /// Returns the names of all channels but one, the default channel first.
    pub(super) fn channels_beside(&self, present: &str) -> impl Iterator<Item = &'a str> {
        let default = self.package.default_channel.as_deref();
        let names = self.package.channels.keys().map(String::as_str);
        let first = names.clone().filter(move |name| Some(*name) == default);
        let others = names.filter(move |name| Some(*name) != default);
        first.chain(others).filter(move |name| *name != present)
    }

    /// Returns true if the package has the bundle, or one with the version if the bundle is not
    /// known.
    pub(super) fn has(&self, operator: &InstalledOperator) -> bool {
        match (&operator.bundle, &operator.version) {
            (Some(bundle), _) => self.package.bundles.contains_key(bundle),
            (None, Some(version)) => self.bundle_of(version).is_some(),
            (None, None) => false,
        }
    }

    /// Returns true if the package has the version of an operator, or has or names its bundle.
    pub(super) fn names(&self, operator: &InstalledOperator) -> bool {
        let names = self
            .names
            .get_or_init(|| bundle_names(self.package).collect());
        let bundle = operator.bundle.as_deref();
        let version = operator.version.as_deref();
        bundle.is_some_and(|bundle| names.contains(bundle))
            || version.is_some_and(|version| self.bundle_of(version).is_some())
    }

    /// Returns the bundle with a version.
    pub(super) fn bundle_of(&self, version: &str) -> Option<&'a str> {
        self.versions.bundle_of(version)
    }
}

impl<'a> KnownChannel<'a> {
    /// Returns the entries that lead to the head of a channel after the upgrade of the cluster to a
    /// version.
    pub(super) fn leading(
        &self,
        target: &KnownChannel<'a>,
        cluster: Option<OpenShiftMinor>,
        budget: &Budget,
    ) -> Result<Option<Rc<LeadingEntries>>, PlanError> {
        let Ok(own) = &self.steps else {
            return Ok(None);
        };
        let Ok(steps) = &target.steps else {
            return Ok(None);
        };
        let catalog = target.catalog;
        let key = [catalog.source.as_str(), catalog.name.as_str(), target.name];
        if let Some(known) = self.leading.borrow().get(&key) {
            return Ok(Some(known.clone()));
        }
        let mut all = Vec::new();
        let mut fitting = Vec::new();
        for entry in &own.graph().entries {
            let start = UpgradeStep::start(entry.name, entry.version);
            let leads = steps.leads_to_head(&start, budget);
            let leads = leads.map_err(|over| target.exceeded(over))?;
            let is_stopping = stop_fault(cluster, self.max_openshift(entry.name)).is_some();
            all.push(leads);
            fitting.push(leads && !is_stopping);
        }
        let leading = Rc::new(LeadingEntries {
            all: own.hits(all),
            fitting: own.hits(fitting),
        });
        self.leading.borrow_mut().insert(key, leading.clone());
        Ok(Some(leading))
    }

    /// Returns the values of `olm.maxOpenShiftVersion` of a bundle.
    pub(super) fn max_openshift(&self, bundle: &str) -> &'a [String] {
        let bundle = self.package.bundles.get(bundle);
        bundle.map_or(&[], |bundle| &bundle.max_openshift)
    }

    /// Returns the error of work that takes too many steps in the channel.
    pub(super) fn exceeded(&self, over: OverBudget) -> PlanError {
        let place = format!(
            "catalog {}, package {}, channel {}",
            self.catalog.name, self.package_name, self.name
        );
        PlanError::exceeded(over, &place)
    }
}

/// Returns the fault for which OLM v0 stops the upgrade of the cluster to a version, by the values
/// of `olm.maxOpenShiftVersion` of a bundle.
pub(super) fn stop_fault(cluster: Option<OpenShiftMinor>, max: &[String]) -> Option<String> {
    let cluster = cluster?;
    match max {
        [] => None,
        [value] => match value.parse::<OpenShiftMinor>() {
            Ok(max) if max < cluster => Some(format!("is {max}")),
            Ok(_) => None,
            Err(error) => Some(format!("cannot be read: {error}")),
        },
        _ => Some("cannot be read: there are several".to_owned()),
    }
}
