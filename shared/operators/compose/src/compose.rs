use std::collections::{BTreeMap, BTreeSet, HashSet};

use model::{Hasher, text::did_you_mean};
use work::Budget;

use crate::dependencies::Dependencies;
use crate::edit::{self, EditedLines};
use crate::error::{WHOLE, edit_error, shown};
use crate::include::{IncludedPackage, Includer};
use crate::lines::{PackageReader, push_lines};
use crate::merge::Merger;
use crate::outline::{PackageOutline, Remaining};
use crate::{
    ComposeError, ComposedContent, Composition, ConflictRule, Decision, DependencyRule,
    Explanation, PackageSink, PackageSource, Removal,
};

/// Maximum size of the documents without a package if several inputs have some, in bytes: they are
/// sorted in memory.
const GLOBAL_BYTES_MAX: usize = 32 << 20;

/// Composes a catalog of `catalogs`: one for each input, then one for each addition. Calls `sink`
/// with each package. Holds one line at a time, and of the bundles names, versions and
/// requirements. A package is read once to decide and once to be written; one that is taken whole
/// is read only to check its dependencies.
///
/// # Errors
/// Fails if the selections, additions or removals do not fit the inputs, if the result would not be
/// valid, if the work exceeds `budget`, or with the error of `sink`. The packages that `sink` has
/// are then no catalog.
pub fn compose<C: PackageSource>(
    composition: &Composition,
    catalogs: &mut [C],
    explanation: &mut Explanation,
    sink: &mut PackageSink<'_>,
    budget: &Budget,
) -> Result<(), ComposeError> {
    composition.check()?;
    let (inputs, additions) = catalogs.split_at_mut(composition.inputs.len());
    let mut composer = Composer {
        composition,
        inputs,
        additions,
        dependencies: Dependencies::new(budget),
        explanation,
        sink,
        place: WHOLE.to_owned(),
        notes_requirements: composition.dependencies != DependencyRule::Ignore,
    };
    composer.run().map_err(|error| match budget.charge(0) {
        // What fails then fails because of that, also the receiver, which may work within the same
        // budget.
        Err(over) => ComposeError::Work {
            place: composer.place,
            over,
        },
        Ok(()) => error,
    })
}

struct Composer<'a, 's, C> {
    composition: &'a Composition,
    inputs: &'a mut [C],
    additions: &'a mut [C],
    dependencies: Dependencies,
    explanation: &'a mut Explanation,
    sink: &'a mut PackageSink<'s>,
    /// Part on which the work is.
    place: String,
    /// True if what bundles require and provide is noted.
    notes_requirements: bool,
}

impl<C: PackageSource> Composer<'_, '_, C> {
    fn run(&mut self) -> Result<(), ComposeError> {
        let owners = self.owners()?;
        self.add_global()?;
        let added = self.additions.iter().flat_map(PackageSource::packages);
        let added = added.filter(|name| !name.is_empty());
        let names: BTreeSet<String> = owners.keys().cloned().chain(added).collect();
        let mut removals = self.composition.remove.iter();
        if let Some(removal) = removals.find(|removal| !names.contains(&removal.package)) {
            return Err(edit::nothing_to_remove(&removal.package, "document"));
        }
        for name in &names {
            self.add_package(name, owners.get(name).copied(), None)?;
        }
        WHOLE.clone_into(&mut self.place);
        if self.composition.dependencies == DependencyRule::Include {
            self.include(&names)?;
        }
        self.dependencies.explain_missing(self.explanation)
    }

    /// Returns the input from which each package is taken.
    fn owners(&mut self) -> Result<BTreeMap<String, usize>, ComposeError> {
        let mut owners: BTreeMap<String, usize> = BTreeMap::new();
        for (at, (input, catalog)) in self
            .composition
            .inputs
            .iter()
            .zip(&*self.inputs)
            .enumerate()
        {
            let packages = catalog.packages();
            let mut selected = input.select.iter().flat_map(|select| &select.packages);
            if let Some(absent) = selected.find(|selection| !catalog.has(&selection.name)) {
                let (input, absent) = (catalog.name(), &absent.name);
                let similar = did_you_mean(absent, packages.iter().map(String::as_str));
                return Err(ComposeError::Refused(format!(
                    "input {input} has no package {absent}{similar}"
                )));
            }
            for package in packages.into_iter().filter(|name| !name.is_empty()) {
                self.dependencies.budget.charge(1)?;
                let why = match owners.get(&package) {
                    _ if input
                        .select
                        .as_ref()
                        .is_some_and(|select| !select.takes(&package)) =>
                    {
                        "not selected from"
                    }
                    Some(_) if self.composition.conflicts == ConflictRule::First => {
                        "an earlier input has it too; not from"
                    }
                    Some(&first) => {
                        let [first, second] = [first, at].map(|at| self.inputs[at].name());
                        return Err(ComposeError::Refused(format!(
                            "package {package} is in {first} and in {second}; select it from one of them, or set conflicts: first"
                        )));
                    }
                    None => {
                        owners.insert(package, at);
                        continue;
                    }
                };
                let reason = format!("{why} {}", catalog.name());
                self.explanation
                    .decide([Decision::of_package(&package, false, reason)]);
            }
        }
        Ok(owners)
    }

    /// Keeps the documents without a package of all inputs, equal lines once.
    fn add_global(&mut self) -> Result<(), ComposeError> {
        let catalogs = self
            .inputs
            .iter_mut()
            .chain(&mut *self.additions)
            .enumerate();
        let mut catalogs: Vec<_> = catalogs.filter(|(_, catalog)| catalog.has("")).collect();
        let inputs = 0..self.composition.inputs.len();
        let first = catalogs
            .first()
            .map(|(at, _)| *at)
            .filter(|at| inputs.contains(at));
        if let (1, Some(input)) = (catalogs.len(), first) {
            return self.push("", ComposedContent::Shard { input });
        }
        let (mut contents, mut lines, mut bytes) = (HashSet::new(), BTreeSet::new(), 0);
        for (_, catalog) in &mut catalogs {
            let mut content = Hasher::new();
            PackageReader::open(*catalog, "", &self.dependencies.budget)?.for_each(|line| {
                content.update(line);
                // Sorted, so that the order of the inputs does not change the content hash.
                bytes += if lines.insert(line.to_vec()) {
                    line.len()
                } else {
                    0
                };
                if bytes > GLOBAL_BYTES_MAX {
                    let what = "the documents without a package of all inputs";
                    return Err(ComposeError::Refused(format!(
                        "{what} exceed {GLOBAL_BYTES_MAX} bytes"
                    )));
                }
                Ok(())
            })?;
            contents.insert(content.finish());
        }
        match (contents.len(), first) {
            (0, _) => Ok(()),
            (1, Some(input)) => self.push("", ComposedContent::Shard { input }),
            _ => push_lines(self.sink, "", &mut || Ok(lines.pop_first())),
        }
    }

    /// Composes one package: what the selection of its input takes, then additions, then removals.
    /// One that is taken along has a selection of its own.
    fn add_package(
        &mut self,
        name: &str,
        owner: Option<usize>,
        included: Option<&IncludedPackage>,
    ) -> Result<(), ComposeError> {
        self.place = format!("package {}", shown(name));
        let removals = self.composition.remove.iter();
        let removals: Vec<&Removal> = removals.filter(|removal| removal.package == name).collect();
        let is_whole =
            |removal: &&Removal| removal.channels.is_empty() && removal.bundles.is_empty();
        if removals.iter().any(is_whole) {
            return Ok(());
        }
        let is_added = self.additions.iter().any(|addition| addition.has(name));
        let is_edited = is_added || !removals.is_empty();
        let selection = match included {
            Some(included) => included.selection.clone(),
            None => owner.and_then(|input| {
                self.composition.inputs[input]
                    .select
                    .as_ref()?
                    .of_package(name)
            }),
        };
        let selection = selection.filter(|selection| !selection.takes_whole());
        let is_read = selection.is_some() || is_edited || self.notes_requirements;
        let mut lines = match owner {
            Some(input) if is_read => {
                PackageReader::open(&mut self.inputs[input], name, &self.dependencies.budget)?
            }
            _ => PackageReader::empty(name, &self.dependencies.budget),
        };
        let mut outline = PackageOutline::default();
        let rest;
        let (mut selected, mut decisions) = (None, Vec::new());
        if let Some(selection) = &selection {
            lines.for_each(|line| outline.add(name, line))?;
            let part = selection.apply(&outline, self.explanation);
            (rest, decisions) = part.map_err(|problem| lines.select_error(&problem))?;
            selected = Some(&rest).filter(|rest| !rest.is_whole());
        } else if let Some(input) = owner {
            let reason = format!("the whole package of {}", self.inputs[input].name());
            decisions.push(Decision::of_package(name, true, reason));
        }
        if let Some(included) = included {
            for decision in &mut decisions {
                let reason = included.reasons.get(&*decision.bundle);
                decision.reason = reason.map_or("not required", |reason| &**reason).to_owned();
            }
        }
        if is_edited {
            return self.edit(name, lines, selected, &removals, decisions);
        }
        self.explanation.decide(decisions);
        match (owner, selected) {
            (Some(input), None) => {
                if self.notes_requirements {
                    lines.for_each(|line| self.dependencies.add_line(name, line))?;
                }
                self.push(name, ComposedContent::Shard { input })
            }
            (_, selected) => self.push_edited(name, EditedLines::new(&mut lines, selected)?),
        }
    }

    /// Adds to a package and removes from it. What is explained and what is written follow from the
    /// same rest.
    fn edit(
        &mut self,
        name: &str,
        mut lines: PackageReader,
        selected: Option<&Remaining<'_>>,
        removals: &[&Removal],
        mut decisions: Vec<Decision>,
    ) -> Result<(), ComposeError> {
        let mut merger = Merger::new(name);
        let additions = self.composition.add.iter().zip(&mut *self.additions);
        for (addition, catalog) in additions.filter(|(_, catalog)| catalog.has(name)) {
            let mut lines = PackageReader::open(catalog, name, &self.dependencies.budget)?;
            merger.add(&mut lines, addition.replace)?;
            let reason = format!("documents of {} are added", catalog.name());
            decisions.push(Decision::of_package(name, true, reason));
        }
        let (mut old, mut new) = (PackageOutline::default(), PackageOutline::default());
        let mut unchanged = EditedLines::new(&mut lines, selected)?;
        // Notices are made when the lines are written.
        while let Some(line) = unchanged.next(&mut Explanation::default())? {
            old.add(name, &line)?;
            if let Some(line) = merger.hold(line)? {
                new.add(name, &line)?;
            }
        }
        let merged = merger.finish()?;
        merged.values().try_for_each(|line| new.add(name, line))?;
        new.check_readable(name)
            .map_err(|problem| edit_error(&problem))?;
        let mut rest = Remaining::all(name, &new);
        for removal in removals {
            edit::remove(&mut rest, removal)?;
        }
        edit::check(&rest, &old)?;
        explain_removed(&rest, removals, &mut decisions);
        self.explanation.decide(decisions);
        let mut all = EditedLines::new(&mut lines, selected)?;
        all.merged = merged;
        all.rest = (!removals.is_empty()).then_some(&rest);
        self.push_edited(name, all)
    }

    /// Takes along what the packages so far require. None of those that the composition names is
    /// widened or brought back.
    fn include(&mut self, named: &BTreeSet<String>) -> Result<(), ComposeError> {
        let includer = Includer::new(self.inputs, &mut self.dependencies, named);
        let included = includer.include_missing()?;
        if let Some(decisions) = &mut self.explanation.decisions {
            // The selections left these packages out.
            decisions.retain(|decision| decision.kept || !included.contains_key(&decision.package));
        }
        // What their bundles require is known.
        self.notes_requirements = false;
        for (name, package) in included {
            self.add_package(&name, Some(package.input), Some(&package))?;
        }
        Ok(())
    }

    fn push(&mut self, name: &str, content: ComposedContent<'_>) -> Result<(), ComposeError> {
        (self.sink)(name, content).map_err(ComposeError::Sink)
    }

    /// Passes the lines of a package to the receiver, and notes what its bundles require and
    /// provide.
    fn push_edited(&mut self, name: &str, mut lines: EditedLines<'_>) -> Result<(), ComposeError> {
        let (explanation, dependencies) = (&mut *self.explanation, &mut self.dependencies);
        let notes_requirements = self.notes_requirements;
        push_lines(self.sink, name, &mut || {
            let line = lines.next(explanation)?;
            if let Some(line) = line.as_ref().filter(|_| notes_requirements) {
                dependencies.add_line(name, line)?;
            }
            Ok(line)
        })
    }
}

/// Explains the bundles that removals took out of a package.
fn explain_removed(rest: &Remaining<'_>, removals: &[&Removal], decisions: &mut Vec<Decision>) {
    let is_gone = |bundle: &str| !bundle.is_empty() && !rest.bundles.contains(bundle);
    decisions.retain(|decision| !decision.kept || !is_gone(&decision.bundle));
    let named: HashSet<&String> = removals
        .iter()
        .flat_map(|removal| &removal.bundles)
        .collect();
    let gone = rest
        .package
        .bundles
        .iter()
        .filter(|(bundle, _)| is_gone(bundle));
    decisions.extend(gone.map(|(bundle, version)| {
        let reason = if named.contains(bundle) {
            "in remove"
        } else {
            "in no channel that remove leaves"
        };
        Decision {
            bundle: bundle.clone(),
            version: version.clone(),
            ..Decision::of_package(rest.name, false, reason.to_owned())
        }
    }));
}
