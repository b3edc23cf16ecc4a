//! The way of each operator.

use std::cell::Cell;
use std::collections::HashMap;
use std::iter;
use std::rc::Rc;

use olm::{UpgradeStarts, UpgradeStep, UpgradeWay, WayHit, comparable_version};

use crate::Bounds;
use crate::plan::known::{KnownChannel, KnownPackage, KnownPackages, known_packages, stop_fault};
use crate::plan::sources::{ChosenPackage, choose, pin_remark};
use crate::plan::ways::unknown_version;
use crate::plan::{InstalledOperator, PlanError, PlanInput, PlannedOperator, UpgradeOrder};

/// Number of unknown versions for which a similar one is looked for: each is compared with all
/// versions of its package.
const SUGGESTIONS_MAX: usize = 20;

/// State that the operators of a plan share while their ways are found.
pub(super) struct Planner<'a> {
    input: PlanInput<'a>,
    bounds: &'a Bounds,
    /// Packages of the present catalogs.
    now: KnownPackages<'a>,
    /// Packages of the catalogs after the upgrade.
    then: KnownPackages<'a>,
    /// Plans by their operator without its namespace.
    done: HashMap<InstalledOperator, PlannedOperator>,
    /// Number of unknown versions for which a similar one is still looked for.
    suggestions_left: Cell<usize>,
}

/// End of the search for a way.
enum NoWay {
    /// Reason for which there is none, for people.
    Because(String),
    /// Reason for which no entry updates the version, for people.
    NoSteps(String),
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
            suggestions_left: Cell::new(SUGGESTIONS_MAX),
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
            Err(NoWay::Because(reason) | NoWay::NoSteps(reason)) => {
                row.reason = Some(reason);
                row.last = row.installed.step();
            }
            Err(NoWay::Failed(error)) => return Err(error),
        }
        let way = row.now.steps().take(row.before).chain(row.after.steps());
        let pin = pin_remark(&row.installed, way.map(UpgradeStep::label));
        row.remarks.extend(pin);
        Ok(row)
    }

    /// Sets the verdict and the steps, by the packages of the catalogs.
    fn find_way(&self, row: &mut PlannedOperator) -> Result<(), NoWay> {
        if row.installed.lacks_package {
            let reason = "no Subscription, label or annotation names its package, and no catalog has its bundle";
            return Err(reason.into());
        }
        let now = choose(&self.now, self.input.from, &row.installed, None);
        let present = now.package;
        let then = choose(&self.then, self.input.to, &row.installed, present);
        let both: Vec<&KnownPackage<'_>> = present.into_iter().chain(then.package).collect();
        complete(&mut row.installed, &both);
        if let Some(known) = present {
            row.present_source = Some(known.catalog.source.clone());
            row.remarks.extend(several(&now, &row.installed));
        }
        let Some(target) = then.package else {
            self.set_present_steps(row, present)?;
            return Err(missing_package(present, &then.others).into());
        };
        row.catalog = Some(target.catalog.name.clone());
        row.target_source = Some(target.catalog.source.clone());
        if now.others.is_empty() {
            row.remarks.extend(several(&then, &row.installed));
        }
        let found = self.find_channel(row, present, target);
        if let Err(NoWay::NoSteps(_)) = &found
            && !both.iter().any(|known| known.names(&row.installed))
        {
            return Err(self.unknown(row, &both).into());
        }
        found
    }

    /// Sets the steps of the present channel, where nothing follows after the upgrade.
    fn set_present_steps(
        &self,
        row: &mut PlannedOperator,
        present: Option<&KnownPackage<'a>>,
    ) -> Result<(), NoWay> {
        if let Some(channel) = row.installed.channel.clone() {
            let positions = self.positions(row, present, &channel)?;
            row.now = positions.now;
        }
        Ok(())
    }

    /// Sets the verdict and the steps along the channel of the operator. Of several that count, it
    /// is the one that ends at the newest version.
    fn find_channel(
        &self,
        row: &mut PlannedOperator,
        present: Option<&KnownPackage<'a>>,
        target: &KnownPackage<'a>,
    ) -> Result<(), NoWay> {
        let Some(channels) = row.installed.channels.clone() else {
            let channel = row.installed.channel.clone();
            let channel = channel.ok_or("the catalogs name no default channel for the package")?;
            let positions = self.positions(row, present, &channel)?;
            row.max_open_shift = positions.max.first().cloned();
            row.now = positions.now.clone();
            let chosen = self.target(target, &channel, &positions)?;
            return self.set_verdict(row, &positions, target, &chosen);
        };
        let names: Vec<&str> = if channels.is_empty() {
            target.channels_beside("").collect()
        } else {
            channels.iter().map(String::as_str).collect()
        };
        let mut best: Option<PlannedOperator> = None;
        let mut first_failure = None;
        for name in &names {
            let mut found = row.clone();
            found.installed.channel = Some((*name).to_owned());
            match self.find_along(&mut found, present, target, name) {
                Err(NoWay::Failed(error)) => return Err(error.into()),
                Err(reason) => {
                    first_failure.get_or_insert(reason);
                }
                Ok(()) => {
                    let version = comparable_version(found.last.label());
                    let is_newer = best
                        .as_ref()
                        .is_none_or(|best| version > comparable_version(best.last.label()));
                    if is_newer {
                        best = Some(found);
                    }
                }
            }
        }
        let Some(best) = best else {
            return Err(first_failure.unwrap_or_else(|| "the package has no channel".into()));
        };
        *row = best;
        Ok(())
    }

    /// Sets the verdict and the steps along one channel, before and after the upgrade.
    fn find_along(
        &self,
        row: &mut PlannedOperator,
        present: Option<&KnownPackage<'a>>,
        target: &KnownPackage<'a>,
        name: &str,
    ) -> Result<(), NoWay> {
        let positions = self.positions(row, present, name)?;
        row.max_open_shift = positions.max.first().cloned();
        row.now = positions.now.clone();
        let channel = target.channel(name, &self.bounds.budget)?;
        let channel = channel.ok_or_else(|| format!("channel {name} is gone after the upgrade"))?;
        if let Err(fault) = &channel.steps {
            return Err(broken(name, fault).into());
        }
        if self.leading(&positions, &channel)?.last.is_none() {
            return Err(NoWay::NoSteps(no_way_in(name)));
        }
        self.set_verdict(row, &positions, target, &channel)
    }

    /// Returns the versions before the upgrade, along a channel.
    fn positions(
        &self,
        row: &PlannedOperator,
        present: Option<&KnownPackage<'a>>,
        channel: &str,
    ) -> Result<Positions<'a>, PlanError> {
        let budget = &self.bounds.budget;
        let mut positions = Positions {
            installed: row.installed.step(),
            max: row.installed.max_openshift.clone().unwrap_or_default(),
            now: UpgradeWay::default(),
            channel: None,
        };
        if let Some(known) = present {
            positions.channel = known.channel(channel, budget)?;
        }
        // A broken channel offers no steps.
        if let Some(channel) = &positions.channel
            && let Ok(steps) = &channel.steps
        {
            let way = steps.way(&positions.installed, budget);
            positions.now = way.map_err(|over| channel.exceeded(over))?;
        }
        Ok(positions)
    }

    /// Sets the verdict and the steps afterwards, along the channel after the upgrade.
    fn set_verdict(
        &self,
        row: &mut PlannedOperator,
        positions: &Positions<'a>,
        then: &KnownPackage<'a>,
        target: &KnownChannel<'a>,
    ) -> Result<(), NoWay> {
        row.target_channel = Some(target.name.to_owned());
        let leading = self.leading(positions, target)?;
        let Some(least) = leading.least else {
            return Err(self.stop_reason(positions, leading.last).into());
        };
        let most = leading.most.unwrap_or(least);
        row.at_least = positions.label_at(least);
        row.at_most = positions.label_at(most);
        let last_now = positions.now.last().map(UpgradeStep::label);
        row.goes_beyond = row.at_most.as_deref() != last_now;
        row.before = least.steps;
        let before = positions.bundle_at(least);
        if let Ok(steps) = &target.steps {
            let way = steps.way(before, &self.bounds.budget);
            row.after = way.map_err(|over| target.exceeded(over))?;
        }
        row.last = row.after.last().unwrap_or(before).clone();
        row.verdict = match (least.steps, most.steps) {
            (0, 0) if row.after.is_empty() => UpgradeOrder::Stays,
            (0, 0) => UpgradeOrder::ClusterFirst,
            (0, _) => UpgradeOrder::Either,
            _ => UpgradeOrder::OperatorFirst,
        };
        if most.steps < positions.now.len() && row.installed.moves_by_itself() {
            row.remarks.extend(self.halt_remark(row, positions));
        }
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

    /// Returns what is to do so that an operator that moves by itself does not move too far before
    /// the cluster.
    fn halt_remark(&self, row: &PlannedOperator, positions: &Positions<'a>) -> Option<String> {
        let last = positions.now.last()?;
        let channel = positions.channel.as_ref()?;
        let halt = if row.installed.is_extension {
            let version = row
                .at_most
                .as_deref()
                .unwrap_or(positions.installed.label());
            format!("pin the ClusterExtension to version {version}")
        } else {
            "set approval to Manual".to_owned()
        };
        let max = channel.max_openshift(&last.bundle);
        let label = last.label();
        Some(match stop_fault(self.input.cluster, max) {
            Some(_) => format!("{halt}: {label} would stop the upgrade"),
            None => format!("{halt}: no way leads on from {label} after the upgrade"),
        })
    }

    /// Returns the reason for a version that no catalog has and no entry updates.
    fn unknown(&self, row: &PlannedOperator, packages: &[&KnownPackage<'_>]) -> String {
        let installed = row.installed.step();
        let left = self.suggestions_left.get();
        self.suggestions_left.set(left.saturating_sub(1));
        let known = packages.iter().take(left).map(|known| known.package);
        let package = &row.installed.package;
        let problem = unknown_version(package, known, installed.label());
        format!("{problem}, and no entry updates it")
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
                return Err(broken(present, fault).into());
            }
            if self.leading(positions, channel)?.last.is_some() {
                return Ok(channel.clone());
            }
        }
        let no_way = no_way_in(present);
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
                    Some(_) => Err(NoWay::NoSteps(format!("{no_way}; channel {name} has one"))),
                    None => Ok(other),
                };
            }
        }
        Err(NoWay::NoSteps(match same {
            Some(_) => no_way,
            None => {
                format!("channel {present} is gone after the upgrade, and no other one leads on")
            }
        }))
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

fn broken(channel: &str, fault: &str) -> String {
    format!("channel {channel} is broken after the upgrade: {fault}")
}

fn no_way_in(channel: &str) -> String {
    format!("after the upgrade, channel {channel} has no way to its head from any version before")
}

/// Returns the reason for a package that the catalog after the upgrade does not have.
fn missing_package(present: Option<&KnownPackage<'_>>, others: &[&str]) -> String {
    if !others.is_empty() {
        return format!(
            "the catalog of its source does not have the package after the upgrade; there is one in {}",
            others.join(", ")
        );
    }
    match present {
        Some(_) => "the catalog after the upgrade does not have the package".to_owned(),
        None => "the catalogs do not have the package".to_owned(),
    }
}

/// Returns a remark about several catalogs of which none is the one of the operator.
fn several(chosen: &ChosenPackage<'_, '_>, operator: &InstalledOperator) -> Option<String> {
    let known = chosen.package?;
    if chosen.others.is_empty() {
        return None;
    }
    let catalogs = chosen.others.join(", ");
    let name = &known.catalog.name;
    let source = match &operator.source {
        Some(source) => format!(": choose by --source {source}=CATALOG"),
        None => String::new(),
    };
    Some(format!(
        "several catalogs have the package: {catalogs}; {name} is taken{source}"
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
    if operator.channel.is_none() && operator.channels.is_none() {
        let mut packages = packages.iter();
        operator.channel = packages.find_map(|known| known.package.default_channel.clone());
    }
}
