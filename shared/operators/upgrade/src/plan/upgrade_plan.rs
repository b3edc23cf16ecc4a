//! The order in which operators and their cluster move on.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::Bounds;
use crate::plan::planner::Planner;
use crate::plan::requirements::set_missing;
use crate::plan::support::PackageSupport;
use crate::plan::ways::step_bytes;
use crate::plan::{PlanCatalog, PlanError, PlanInput, PlannedOperator, SupportState, UpgradeOrder};

/// Place of errors about all operators at once.
const ALL: &str = "the plan of all operators";

/// Plan for the operators of a cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradePlan {
    /// 1. A change of the fields that are here increases it.
    pub format_version: u32,
    /// Version of OpenShift after the upgrade.
    pub cluster: Option<String>,
    /// Day for which the support is told.
    pub on: String,
    /// Operators in the order of the input.
    pub operators: Vec<PlannedOperator>,
}

impl UpgradePlan {
    /// Plans each operator.
    ///
    /// # Errors
    /// Bounds that are exceeded.
    pub fn new(input: PlanInput<'_>, bounds: &Bounds) -> Result<Self, PlanError> {
        let mut planner = Planner::new(input, bounds);
        let mut rows = Vec::with_capacity(input.installed.len());
        for operator in input.installed {
            rows.push(planner.plan(operator)?);
        }
        set_labels(&mut rows);
        set_support(&mut rows, input);
        let set = set_missing(&mut rows, input, bounds);
        set.map_err(|exceeded| PlanError::exceeded(exceeded, ALL))?;
        Ok(Self {
            format_version: 1,
            cluster: input.cluster.map(|cluster| cluster.to_string()),
            on: input.on.to_string(),
            operators: rows,
        })
    }

    /// Counts all steps as a part of the answer. In memory most operators share them, but as JSON
    /// each is printed.
    ///
    /// # Errors
    /// Bounds that are exceeded.
    pub fn count_steps(&self, bounds: &Bounds) -> Result<(), PlanError> {
        for row in &self.operators {
            for step in row.now.steps().chain(row.after.steps()) {
                let counted = bounds.answer(step_bytes(step));
                counted.map_err(|exceeded| PlanError::exceeded(exceeded, ALL))?;
            }
        }
        Ok(())
    }

    /// Returns true if each operator has a way.
    pub fn is_possible(&self) -> bool {
        self.count(UpgradeOrder::NoWay) == 0
    }

    /// Returns the numbers of verdicts in words.
    pub fn summary(&self) -> String {
        use UpgradeOrder::{ClusterFirst, Either, NoWay, OperatorFirst, Stays};

        let counts = [Stays, ClusterFirst, OperatorFirst, Either, NoWay]
            .map(|order| format!("{} {}", self.count(order), order.as_str()));
        let ended = self
            .operators
            .iter()
            .filter(|row| row.target_support.state == SupportState::SelfSupport)
            .count();
        format!(
            "{} operators: {}; {ended} without support",
            self.operators.len(),
            counts.join(", ")
        )
    }

    /// Returns a text for each operator that an ImageSetConfiguration of the plan leaves out.
    pub fn left_out(&self) -> impl Iterator<Item = String> {
        let left_out = self.operators.iter();
        let left_out = left_out.filter(|row| row.verdict == UpgradeOrder::NoWay);
        left_out.map(|row| {
            let reason = row.reason.as_deref().unwrap_or("it has no way");
            format!("{} is left out: {reason}", row.label)
        })
    }

    fn count(&self, order: UpgradeOrder) -> usize {
        self.operators
            .iter()
            .filter(|row| row.verdict == order)
            .count()
    }
}

/// Sets the names for people, as kubectl writes them. Operators of one package differ in their
/// namespaces.
fn set_labels(rows: &mut [PlannedOperator]) {
    let mut seen: HashSet<String> = HashSet::new();
    let mut repeated: HashSet<String> = HashSet::new();
    for row in rows.iter() {
        let package = &row.installed.package;
        if !seen.insert(package.clone()) {
            repeated.insert(package.clone());
        }
    }
    for row in rows {
        let package = &row.installed.package;
        row.label = match &row.installed.namespace {
            Some(namespace) if repeated.contains(package) => format!("{namespace}/{package}"),
            _ => package.clone(),
        };
    }
}

/// Sets the support of the installed and the last version of each operator, by the catalogs after
/// the upgrade if they tell it: they are newer.
fn set_support(rows: &mut [PlannedOperator], input: PlanInput<'_>) {
    let mut known: HashMap<String, PackageSupport> = HashMap::new();
    for row in rows {
        let package = &row.installed.package;
        let support = known.entry(package.clone()).or_insert_with(|| {
            let newer = documents(input.to, package);
            if newer.is_empty() {
                PackageSupport::new(&documents(input.from, package))
            } else {
                PackageSupport::new(&newer)
            }
        });
        let installed = row.installed.step();
        row.support = support.of(installed.label(), input.on, input.cluster);
        row.target_support = support.of(row.last.label(), input.on, input.cluster);
    }
}

/// Returns the documents about the support of a package.
fn documents<'a>(catalogs: &'a [PlanCatalog], package: &str) -> Vec<&'a String> {
    let packages = catalogs
        .iter()
        .filter_map(|catalog| catalog.packages.get(package));
    packages.flat_map(|package| &package.lifecycles).collect()
}
