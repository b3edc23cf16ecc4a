//! The way of each operator.

use std::collections::HashMap;
use std::iter;
use std::rc::Rc;

use olm::{UpgradeStarts, UpgradeStep, UpgradeWay, WayHit};

use crate::Bounds;
use crate::plan::known::{KnownChannel, KnownPackage, KnownPackages, known_packages, stop_fault};
use crate::plan::{InstalledOperator, PlanError, PlanInput, PlannedOperator, UpgradeOrder};

/// What the operators of a plan share while their ways are found.
pub(super) struct Planner<'a> {
    input: PlanInput<'a>,
    bounds: &'a Bounds,
    /// Packages of the present catalogs.
    now: KnownPackages<'a>,
    /// Packages of the catalogs after the upgrade.
    then: KnownPackages<'a>,
    /// Plans by their operator without its namespace.
    done: HashMap<InstalledOperator, PlannedOperator>,
}

/// End of the search for a way.
enum NoWay {
    /// Reason for which there is none, for people.
    Because(String),
    Failed(PlanError),
}

/// Versions before the upgrade of the cluster: the installed one, then those of the steps now.
struct Positions<'a> {
    installed: UpgradeStep,
    /// Values of `olm.maxOpenShiftVersion` of the installed version.
    max: Vec<String>,
    now: UpgradeWay,
    /// Channel of the steps now.
    channel: Option<Rc<KnownChannel<'a>>>,
}

/// Position among the versions before the upgrade: 0 is the installed one.
#[derive(Debug, Clone, Copy)]
struct Position {
    steps: usize,
    /// Entry to which the last of the steps leads; `None` for the installed version.
    entry: Option<usize>,
}

/// Positions from which the steps after the upgrade lead to the head.
#[derive(Default)]
struct LeadingPositions {
    /// First one that does not stop the upgrade of the cluster.
    least: Option<Position>,
    /// Last one that does not stop it.
    most: Option<Position>,
    /// Last one, whether it stops it or not.
    last: Option<Position>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(input: PlanInput<'a>, bounds: &'a Bounds) -> Self {
        Self {
            input,
            bounds,
            now: known_packages(input.from),
            then: known_packages(input.to),
            done: HashMap::new(),
        }
    }

    /// Plans an operator. Operators that differ only in their namespace are planned once.
    pub(super) fn plan(
        &mut self,
        operator: &InstalledOperator,
    ) -> Result<PlannedOperator, PlanError> {
        let key = InstalledOperator {
            namespace: None,
            ..operator.clone()
        };
        if !self.done.contains_key(&key) {
            let row = self.search(&key)?;
            self.done.insert(key.clone(), row);
        }
        let done = &self.done[&key];
        self.bounds.answer(done.bytes()).map_err(|exceeded| {
            PlanError::exceeded(exceeded, &format!("package {}", operator.package))
        })?;
        let mut row = done.clone();
        row.installed.namespace.clone_from(&operator.namespace);
        Ok(row)
    }

    /// Plans an operator of which nothing is known yet.
    fn search(&self, operator: &InstalledOperator) -> Result<PlannedOperator, PlanError> {
        let mut row = PlannedOperator {
            installed: operator.clone(),
            ..PlannedOperator::default()
        };
        match self.find_way(&mut row) {
            Ok(()) => {}
            Err(NoWay::Because(reason)) => {
                row.reason = Some(reason);
                row.last = row.installed.step();
            }
            Err(NoWay::Failed(error)) => return Err(error),
        }
        Ok(row)
    }

    /// Sets the verdict and the steps.
    fn find_way(&self, row: &mut PlannedOperator) -> Result<(), NoWay> {
        if row.installed.package.is_empty() {
            return Err("no Subscription and no annotation names its package".into());
        }
        let now = choose(&self.now, &row.installed)?;
        let then = choose(&self.then, &row.installed)?;
        let both: Vec<&KnownPackage<'_>> = now.into_iter().chain(then).collect();
        complete(&mut row.installed, &both);
        let channel = row.installed.channel.clone();
        let channel = channel.ok_or("the catalogs do not have the package")?;
        let mut positions = Positions {
            installed: row.installed.step(),
            max: row.installed.max_openshift.clone().unwrap_or_default(),
            now: UpgradeWay::default(),
            channel: None,
        };
        row.max_open_shift = positions.max.first().cloned();
        let budget = &self.bounds.budget;
        if let Some(known) = now {
            row.present_catalog = Some(known.catalog.name.clone());
            positions.channel = known.channel(&channel, budget)?;
        }
        // A broken channel offers no steps.
        if let Some(channel) = &positions.channel
            && let Ok(steps) = &channel.steps
        {
            let way = steps.way(&positions.installed, budget);
            positions.now = way.map_err(|over| channel.exceeded(over))?;
            row.now = positions.now.clone();
        }
        let then = then.ok_or("the catalog after the upgrade does not have the package")?;
        row.catalog = Some(then.catalog.name.clone());
        let target = self.target(then, &channel, &positions)?;
        row.target_channel = Some(target.name.to_owned());
        let leading = self.leading(&positions, &target)?;
        let Some(least) = leading.least else {
            return Err(self.stop_reason(&positions, leading.last).into());
        };
        let most = leading.most.unwrap_or(least);
        row.verdict = match (least.steps, most.steps) {
            (0, 0) => UpgradeOrder::ClusterFirst,
            (0, _) => UpgradeOrder::Either,
            _ => UpgradeOrder::OperatorFirst,
        };
        row.at_least = positions.label_at(least);
        row.at_most = positions.label_at(most);
        let last_now = positions.now.last().map(UpgradeStep::label);
        row.goes_beyond = row.at_most.as_deref() != last_now;
        row.before = least.steps;
        let before = positions.bundle_at(least);
        if let Ok(steps) = &target.steps {
            let way = steps.way(before, budget);
            row.after = way.map_err(|over| target.exceeded(over))?;
        }
        row.last = row.after.last().unwrap_or(before).clone();
        for (kind, name) in [
            ("package", ""),
            ("channel", target.name),
            ("bundle", &*row.last.bundle),
        ] {
            if let Some(message) = then.package.deprecation(&format!("olm.{kind}"), name) {
                let what = format!("{kind} {name}");
                row.deprecations
                    .push(format!("{}: {message}", what.trim_end()));
            }
        }
        Ok(())
    }

    /// Returns the channel after the upgrade. Another one than the present one is chosen only if that
    /// is gone: the default one first.
    fn target(
        &self,
        then: &KnownPackage<'a>,
        present: &str,
        positions: &Positions<'a>,
    ) -> Result<Rc<KnownChannel<'a>>, NoWay> {
        let budget = &self.bounds.budget;
        let same = then.channel(present, budget)?;
        if let Some(channel) = &same {
            if let Err(fault) = &channel.steps {
                let broken = format!("channel {present} is broken after the upgrade: {fault}");
                return Err(broken.into());
            }
            if self.leading(positions, channel)?.last.is_some() {
                return Ok(channel.clone());
            }
        }
        let no_way = format!(
            "after the upgrade, channel {present} has no way to its head from any version before"
        );
        let steps = iter::once(&positions.installed).chain(positions.now.steps());
        let starts = UpgradeStarts::new(steps);
        for name in then.channels_beside(present) {
            let Some(other) = then.channel(name, budget)? else {
                continue;
            };
            let Ok(steps) = &other.steps else {
                continue;
            };
            let leads = starts.any_leads_to_head(steps, budget);
            if leads.map_err(|over| other.exceeded(over))? {
                return match same {
                    Some(_) => Err(format!("{no_way}; channel {name} has one").into()),
                    None => Ok(other),
                };
            }
        }
        Err(match same {
            Some(_) => no_way.into(),
            None => {
                format!("channel {present} is gone after the upgrade, and no other one leads on")
                    .into()
            }
        })
    }

    /// Finds the positions from which a channel leads to its head.
    fn leading(
        &self,
        positions: &Positions<'a>,
        target: &KnownChannel<'a>,
    ) -> Result<LeadingPositions, PlanError> {
        let budget = &self.bounds.budget;
        let mut found = LeadingPositions::default();
        if let Some(channel) = &positions.channel
            && let Some(leading) = channel.leading(target, self.input.cluster, budget)?
        {
            let now = &positions.now;
            found.least = leading.fitting.first_on(now).map(Position::from);
            found.most = leading.fitting.last_on(now).map(Position::from);
            found.last = leading.all.last_on(now).map(Position::from);
        }
        if let Ok(steps) = &target.steps {
            let leads = steps.leads_to_head(&positions.installed, budget);
            if leads.map_err(|over| target.exceeded(over))? {
                let is_stopping = stop_fault(self.input.cluster, &positions.max).is_some();
                found.add_installed(is_stopping);
            }
        }
        Ok(found)
    }

    /// Returns the reason for which a version stops the upgrade of the cluster.
    fn stop_reason(&self, positions: &Positions<'a>, at: Option<Position>) -> String {
        let at = at.unwrap_or(Position::INSTALLED);
        let bundle = positions.bundle_at(at);
        let max = match &positions.channel {
            Some(channel) if at.entry.is_some() => channel.max_openshift(&bundle.bundle),
            _ => positions.max.as_slice(),
        };
        let fault = stop_fault(self.input.cluster, max).unwrap_or_default();
        format!(
            "{} stops the upgrade of the cluster: its olm.maxOpenShiftVersion {fault}",
            bundle.label()
        )
    }
}

impl Position {
    const INSTALLED: Self = Self {
        steps: 0,
        entry: None,
    };
}

impl From<WayHit> for Position {
    fn from(hit: WayHit) -> Self {
        Self {
            steps: hit.steps,
            entry: Some(hit.entry),
        }
    }
}

impl Positions<'_> {
    /// Returns the bundle that is installed at a position.
    fn bundle_at(&self, position: Position) -> &UpgradeStep {
        match position.entry {
            Some(entry) => self.now.bundle(entry),
            None => &self.installed,
        }
    }

    /// Returns the version at a position for people; `None` for the installed one.
    fn label_at(&self, position: Position) -> Option<String> {
        let entry = position.entry?;
        Some(self.now.bundle(entry).label().to_owned())
    }
}

impl LeadingPositions {
    /// Adds the installed version, which comes before all others.
    fn add_installed(&mut self, is_stopping: bool) {
        self.last.get_or_insert(Position::INSTALLED);
        if !is_stopping {
            self.least = Some(Position::INSTALLED);
            self.most.get_or_insert(Position::INSTALLED);
        }
    }
}

impl From<PlanError> for NoWay {
    fn from(error: PlanError) -> Self {
        Self::Failed(error)
    }
}

impl From<String> for NoWay {
    fn from(reason: String) -> Self {
        Self::Because(reason)
    }
}

impl From<&str> for NoWay {
    fn from(reason: &str) -> Self {
        Self::Because(reason.to_owned())
    }
}

/// Returns the package in the one catalog that has it. Of several it is the one that has the
/// installed bundle.
fn choose<'k, 'a>(
    packages: &'k KnownPackages<'a>,
    operator: &InstalledOperator,
) -> Result<Option<&'k KnownPackage<'a>>, String> {
    let found = packages.get(&*operator.package);
    let found: Vec<&KnownPackage<'_>> = found.into_iter().flatten().collect();
    if let [] | [_] = found[..] {
        return Ok(found.first().copied());
    }
    let having: Vec<_> = found.iter().filter(|known| known.has(operator)).collect();
    if let [one] = having[..] {
        return Ok(Some(one));
    }
    let catalogs: Vec<&str> = found.iter().map(|known| &*known.catalog.name).collect();
    Err(format!(
        "several catalogs have the package: {}",
        catalogs.join(", ")
    ))
}

/// Adds to an operator what packages know of it, and the cluster does not tell.
fn complete(operator: &mut InstalledOperator, packages: &[&KnownPackage<'_>]) {
    if operator.bundle.is_none()
        && let Some(version) = &operator.version
    {
        let bundle = packages.iter().find_map(|known| known.bundle_of(version));
        operator.bundle = bundle.map(str::to_owned);
    }
    let bundle = operator.bundle.as_ref().and_then(|name| {
        let mut packages = packages.iter();
        packages.find_map(|known| known.package.bundles.get(name))
    });
    if let Some(bundle) = bundle {
        if operator.version.is_none() {
            operator.version.clone_from(&bundle.version);
        }
        if operator.max_openshift.is_none() {
            let max = bundle.max_openshift.iter().take(2);
            operator.max_openshift = Some(max.cloned().collect());
        }
    }
    if operator.channel.is_none() {
        let mut packages = packages.iter();
        operator.channel = packages.find_map(|known| known.package.default_channel.clone());
    }
}
