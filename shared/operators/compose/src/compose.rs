use std::collections::{BTreeMap, BTreeSet, HashSet};

use model::{Hasher, text};
use work::Budget;

use crate::dependencies::Dependencies;
use crate::edit::{self, EditedLines};
use crate::error::{TEXT_CHARS, WHOLE, edit_error};
use crate::include::{IncludedPackage, Includer};
use crate::lines::{PackageReader, push_lines};
use crate::merge::Merger;
use crate::outline::{PackageOutline, Remaining};
use crate::{
    ComposeError, ComposedContent, Composition, ConflictRule, Decision, DependencyRule,
    Explanation, PackageSelection, PackageSink, PackageSource, Removal, Selection,
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

        let mut names: BTreeSet<String> = owners.keys().cloned().collect();
        for addition in &*self.additions {
            names.extend(addition.packages());
        }
        // The documents without a package are written.
        names.remove("");
        for removal in &self.composition.remove {
            if !names.contains(&removal.package) {
                return Err(edit::nothing_to_remove(&removal.package, "document"));
            }
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
        let inputs = self.composition.inputs.iter().zip(&*self.inputs);
        for (at, (input, catalog)) in inputs.enumerate() {
            let packages = catalog.packages();
            if let Some(select) = &input.select {
                check_selected(select, catalog, &packages)?;
            }
            for package in packages {
                if package.is_empty() {
                    continue;
                }
                self.dependencies.budget.charge(1)?;
                let select = input.select.as_ref();
                let why = if select.is_some_and(|select| !select.takes(&package)) {
                    "not selected from"
                } else if let Some(&first) = owners.get(&package) {
                    if self.composition.conflicts == ConflictRule::Error {
                        return Err(ComposeError::Refused(format!(
                            "package {package} is in {} and in {}; select it from one of them, or set conflicts: first",
                            self.inputs[first].name(),
                            catalog.name(),
                        )));
                    }
                    "an earlier input has it too; not from"
                } else {
                    owners.insert(package, at);
                    continue;
                };
                let reason = format!("{why} {}", catalog.name());
                self.explanation
                    .decide([Decision::left_out(&package, reason)]);
            }
        }
        Ok(owners)
    }

    /// Keeps the documents without a package of all inputs, equal lines once.
    fn add_global(&mut self) -> Result<(), ComposeError> {
        let first_input = self.inputs.iter().position(|input| input.has(""));
        let mut catalogs: Vec<&mut C> = Vec::new();
        for catalog in self.inputs.iter_mut().chain(&mut *self.additions) {
            if catalog.has("") {
                catalogs.push(catalog);
            }
        }
        if catalogs.is_empty() {
            return Ok(());
        }
        if let (1, Some(input)) = (catalogs.len(), first_input) {
            return self.push("", ComposedContent::Shard { input });
        }

        let mut contents = HashSet::new();
        // Sorted, so that the order of the inputs does not change the content hash.
        let mut lines = BTreeSet::new();
        let mut bytes = 0;
        for catalog in catalogs {
            let mut content = Hasher::new();
            let mut reader = PackageReader::open(catalog, "", &self.dependencies.budget)?;
            reader.for_each(|line| {
                content.update(line);
                if lines.insert(line.to_vec()) {
                    bytes += line.len();
                }
                if bytes > GLOBAL_BYTES_MAX {
                    return Err(ComposeError::Refused(format!(
                        "the documents without a package of all inputs exceed {GLOBAL_BYTES_MAX} bytes"
                    )));
                }
                Ok(())
            })?;
            contents.insert(content.finish());
        }
        if let (1, Some(input)) = (contents.len(), first_input) {
            return self.push("", ComposedContent::Shard { input });
        }
        push_lines(self.sink, "", &mut || Ok(lines.pop_first()))
    }

    /// Composes one package: what the selection of its input takes, then additions, then removals.
    /// One that is taken along has a selection of its own.
    fn add_package(
        &mut self,
        name: &str,
        owner: Option<usize>,
        included: Option<&IncludedPackage>,
    ) -> Result<(), ComposeError> {
        self.place = format!("package {}", text::line(name, TEXT_CHARS));
        let mut removals: Vec<&Removal> = Vec::new();
        for removal in &self.composition.remove {
            if removal.package != name {
                continue;
            }
            if removal.takes_whole() {
                return Ok(());
            }
            removals.push(removal);
        }
        let is_added = self.additions.iter().any(|addition| addition.has(name));
        let is_edited = is_added || !removals.is_empty();

        let selection = self.selection(name, owner, included);
        let is_read = selection.is_some() || is_edited || self.notes_requirements;
        let mut lines = match owner {
            Some(input) if is_read => {
                PackageReader::open(&mut self.inputs[input], name, &self.dependencies.budget)?
            }
            _ => PackageReader::empty(name, &self.dependencies.budget),
        };
        let mut outline = PackageOutline::default();
        let mut selected: Option<Remaining<'_>> = None;
        let mut decisions = Vec::new();
        if let Some(selection) = &selection {
            lines.for_each(|line| outline.add(name, line))?;
            let applied = selection.apply(&outline, self.explanation);
            let (rest, reasons) = applied.map_err(|problem| lines.select_error(&problem))?;
            if !rest.is_whole() {
                selected = Some(rest);
            }
            decisions = reasons;
        } else if let Some(input) = owner {
            let reason = format!("the whole package of {}", self.inputs[input].name());
            decisions.push(Decision::taken(name, reason));
        }
        if let Some(included) = included {
            for decision in &mut decisions {
                decision.reason = match included.reasons.get(&*decision.bundle) {
                    Some(reason) => reason.to_string(),
                    None => "not required".to_owned(),
                };
            }
        }

        if is_edited {
            return self.edit(name, lines, selected.as_ref(), &removals, decisions);
        }
        self.explanation.decide(decisions);
        if let (Some(input), None) = (owner, &selected) {
            if self.notes_requirements {
                lines.for_each(|line| self.dependencies.add_line(name, line))?;
            }
            return self.push(name, ComposedContent::Shard { input });
        }
        self.push_edited(name, EditedLines::new(&mut lines, selected.as_ref())?)
    }

    /// Returns the selection within a package of an input, or `None` if the whole package is taken.
    fn selection(
        &self,
        name: &str,
        owner: Option<usize>,
        included: Option<&IncludedPackage>,
    ) -> Option<PackageSelection> {
        let selection = match included {
            Some(included) => included.selection.clone()?,
            None => {
                let input = &self.composition.inputs[owner?];
                input.select.as_ref()?.of_package(name)?
            }
        };
        if selection.takes_whole() {
            return None;
        }
        Some(selection)
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
        for (addition, catalog) in self.composition.add.iter().zip(&mut *self.additions) {
            if !catalog.has(name) {
                continue;
            }
            let mut lines = PackageReader::open(catalog, name, &self.dependencies.budget)?;
            merger.add(&mut lines, addition.replace)?;
            let reason = format!("documents of {} are added", catalog.name());
            decisions.push(Decision::taken(name, reason));
        }

        let mut old = PackageOutline::default();
        let mut new = PackageOutline::default();
        let mut unchanged = EditedLines::new(&mut lines, selected)?;
        // Notices are made when the lines are written.
        while let Some(line) = unchanged.next(&mut Explanation::default())? {
            old.add(name, &line)?;
            if let Some(line) = merger.hold(line)? {
                new.add(name, &line)?;
            }
        }
        let merged = merger.finish()?;
        for line in merged.values() {
            new.add(name, line)?;
        }
        new.check_readable(name)
            .map_err(|problem| edit_error(&problem))?;

        let mut rest = Remaining::all(name, &new);
        for removal in removals {
            edit::remove(&mut rest, removal)?;
        }
        edit::check(&rest, &old).map_err(|problem| edit_error(&problem))?;
        explain_removed(&rest, removals, &mut decisions);
        self.explanation.decide(decisions);

        let mut edited = EditedLines::new(&mut lines, selected)?;
        edited.merged = merged;
        if !removals.is_empty() {
            edited.rest = Some(&rest);
        }
        self.push_edited(name, edited)
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
        push_lines(self.sink, name, &mut || {
            let line = lines.next(self.explanation)?;
            if self.notes_requirements
                && let Some(line) = &line
            {
                self.dependencies.add_line(name, line)?;
            }
            Ok(line)
        })
    }
}

/// Refuses a selection that names a package which its catalog does not have.
fn check_selected(
    select: &Selection,
    catalog: &impl PackageSource,
    packages: &[String],
) -> Result<(), ComposeError> {
    for selection in &select.packages {
        if catalog.has(&selection.name) {
            continue;
        }
        let input = catalog.name();
        let absent = &selection.name;
        let similar = text::did_you_mean(absent, packages.iter().map(String::as_str));
        return Err(ComposeError::Refused(format!(
            "input {input} has no package {absent}{similar}"
        )));
    }
    Ok(())
}

/// Explains the bundles that removals took out of a package.
fn explain_removed(rest: &Remaining<'_>, removals: &[&Removal], decisions: &mut Vec<Decision>) {
    // The name is empty if the whole package is meant.
    let is_gone = |bundle: &str| !bundle.is_empty() && !rest.bundles.contains(bundle);
    decisions.retain(|decision| !decision.kept || !is_gone(&decision.bundle));

    let named = removals.iter().flat_map(|removal| &removal.bundles);
    let named: HashSet<&String> = named.collect();
    for (bundle, version) in &rest.package.bundles {
        if !is_gone(bundle) {
            continue;
        }
        let reason = if named.contains(bundle) {
            "in remove"
        } else {
            "in no channel that remove leaves"
        };
        decisions.push(Decision {
            bundle: bundle.clone(),
            version: version.clone(),
            ..Decision::left_out(rest.name, reason.to_owned())
        });
    }
}
