use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Composition, ConflictRule, Decision, DependencyRule, Explanation, Kept, NamedCatalog, PackageLines, ReadError,
    Removal, SelectError,
    dependencies::Dependencies,
    edit,
    include::Includer,
    input::{read, read_bytes, unreadable},
    rewrite::lines,
};

/// Receiver of the packages of a composed catalog: the documents without a package first, then the packages in byte order,
/// and after them those of [`DependencyRule::Include`], in byte order too.
pub type PackageSink<'a> = dyn FnMut(ComposedPackage) -> Result<(), ReadError> + 'a;

/// Result of a composition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComposedCatalog {
    /// Documents without a package first, if there are any, then the packages in byte order of their names.
    pub packages: Vec<ComposedPackage>,
    /// Explanation of what is in and what is not.
    pub explanation: Explanation,
}

/// Package of a composed catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposedPackage {
    /// Name of the package; empty for the documents without one.
    pub name: String,
    /// Place of its lines.
    pub content: ComposedContent,
}

/// Lines of a composed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposedContent {
    /// All lines of an input, whose shard can be used again.
    Shard {
        /// Number of the input; the first is 0.
        input: usize,
    },
    /// New lines in canonical form.
    Lines(Vec<u8>),
}

/// Error of a composition.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// Nothing is composed.
    #[error("a composition needs `inputs` or `add`")]
    NoInput,
    /// An input has no place, or two.
    #[error("an input has either `catalog` (published by this mirror) or `source` (pulled)")]
    Origin,
    /// A selection cannot be applied to its input.
    #[error("input {0}")]
    Select(String, #[source] Box<SelectError>),
    /// A selection names a package that its input does not have.
    #[error("input {0} has no package {1}")]
    NoPackage(String, String),
    /// Two inputs have the same package.
    #[error("package {0} is in {1} and in {2}; select it from one of them, or set conflicts: first")]
    Conflict(String, String, String),
    /// An addition has other content for what exists.
    #[error("add: package {0} has {1} already, with other content; set replace: true to replace it")]
    Exists(String, String),
    /// A removal names what is not there.
    #[error("remove: the composition has no {1} of package {0}")]
    NothingToRemove(String, String),
    /// The package is not valid after `add` and `remove`.
    #[error("add and remove leave an invalid package")]
    Edit(#[source] Box<SelectError>),
    /// The lines of a package cannot be read.
    #[error("input {input}: cannot read package {package:?}")]
    Read {
        /// Name of the input.
        input: String,
        /// Name of the package.
        package: String,
        /// Error of the storage.
        source: ReadError,
    },
    /// The receiver of the packages failed.
    #[error("cannot keep a package")]
    Sink(#[source] ReadError),
}

/// Composes a catalog in memory, as [`compose_to`] does.
///
/// # Errors
/// As [`compose_to`].
pub fn compose<'p>(
    composition: &Composition,
    inputs: &mut [NamedCatalog<'p>],
    additions: &mut [NamedCatalog<'p>],
) -> Result<ComposedCatalog, ComposeError> {
    let mut packages = Vec::new();
    let mut keep = |package| {
        packages.push(package);
        Ok(())
    };
    let explanation = compose_to(composition, inputs, additions, &mut keep)?;
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(ComposedCatalog { packages, explanation })
}

/// Composes a catalog and calls `sink` with each package, so that only one is held in memory at a time. Each package of an input
/// is read at most once, and a second time if it is taken along. One that is taken whole is read only to check its dependencies.
///
/// # Errors
/// Fails if the selections, additions or removals do not fit the inputs, if the result would not be valid, or with the error of
/// `sink`. The packages that `sink` has are then no catalog.
pub fn compose_to<'p>(
    composition: &Composition,
    inputs: &mut [NamedCatalog<'p>],
    additions: &mut [NamedCatalog<'p>],
    sink: &mut PackageSink<'_>,
) -> Result<Explanation, ComposeError> {
    composition.check()?;
    let added = additions
        .iter()
        .map(|addition| addition.packages.packages().into_iter().collect());
    let mut composer = Composer {
        composition,
        added: added.collect(),
        inputs,
        additions,
        dependencies: Dependencies::default(),
        explanation: Explanation::default(),
        sink,
    };
    let owners = composer.owners()?;
    composer.add_global()?;
    let added = composer.added.iter().flatten().filter(|name| !name.is_empty());
    let names: BTreeSet<String> = owners.keys().chain(added).cloned().collect();
    for removal in &composition.remove {
        if !names.contains(&removal.package) {
            let what = "document".to_owned();
            return Err(ComposeError::NothingToRemove(removal.package.clone(), what));
        }
    }
    for name in &names {
        if !composition
            .remove
            .iter()
            .any(|removal| removal.package == *name && removal.is_whole())
        {
            composer.add_package(name, owners.get(name).copied())?;
        }
    }
    if composition.dependencies == DependencyRule::Include {
        composer.include(&names)?;
    }
    composer.explanation.notices.extend(composer.dependencies.missing());
    Ok(composer.explanation)
}

impl Removal {
    fn is_whole(&self) -> bool {
        self.channels.is_empty() && self.bundles.is_empty()
    }
}

struct Composer<'a, 'p, 's> {
    composition: &'a Composition,
    inputs: &'a mut [NamedCatalog<'p>],
    additions: &'a mut [NamedCatalog<'p>],
    /// Names of the packages of each addition.
    added: Vec<BTreeSet<String>>,
    dependencies: Dependencies,
    explanation: Explanation,
    sink: &'a mut PackageSink<'s>,
}

impl Composer<'_, '_, '_> {
    /// Returns the input from which each package is taken.
    fn owners(&mut self) -> Result<BTreeMap<String, usize>, ComposeError> {
        let mut owners: BTreeMap<String, usize> = BTreeMap::new();
        for (at, (input, catalog)) in self.composition.inputs.iter().zip(&*self.inputs).enumerate() {
            let packages: BTreeSet<String> = catalog.packages.packages().into_iter().collect();
            let selected = input.select.iter().flat_map(|select| &select.packages);
            for package in selected.map(|selection| &selection.name) {
                if !packages.contains(package) {
                    return Err(ComposeError::NoPackage(catalog.name.clone(), package.clone()));
                }
            }
            for package in packages.into_iter().filter(|name| !name.is_empty()) {
                let why = match owners.get(&package) {
                    _ if input.select.as_ref().is_some_and(|select| !select.takes(&package)) => "not selected from",
                    Some(_) if self.composition.conflicts == ConflictRule::First => {
                        "an earlier input has it too; not from"
                    }
                    Some(&first) => {
                        let names = [first, at].map(|at| self.inputs[at].name.clone());
                        let [first, second] = names;
                        return Err(ComposeError::Conflict(package, first, second));
                    }
                    None => {
                        owners.insert(package, at);
                        continue;
                    }
                };
                let reason = format!("{why} {}", catalog.name);
                self.explanation
                    .decisions
                    .push(Decision::of_package(&package, false, reason));
            }
        }
        Ok(owners)
    }

    /// Keeps the documents without a package of all inputs, equal lines once.
    fn add_global(&mut self) -> Result<(), ComposeError> {
        let has = |catalog: &NamedCatalog<'_>| catalog.packages.packages().iter().any(String::is_empty);
        let inputs: Vec<usize> = (0..self.inputs.len()).filter(|at| has(&self.inputs[*at])).collect();
        let mut texts: BTreeSet<Vec<u8>> = BTreeSet::new();
        for catalog in self.additions.iter_mut().filter(|catalog| has(catalog)) {
            texts.insert(read_bytes(catalog, "")?);
        }
        if let ([input], true) = (inputs.as_slice(), texts.is_empty()) {
            return self.push("", ComposedContent::Shard { input: *input });
        }
        for input in &inputs {
            texts.insert(read_bytes(&mut self.inputs[*input], "")?);
        }
        if let (1, Some(input)) = (texts.len(), inputs.first()) {
            return self.push("", ComposedContent::Shard { input: *input });
        }
        // Sorted, so that the order of the inputs does not change the content hash.
        let all: BTreeSet<&[u8]> = texts.iter().flat_map(|text| lines(text)).collect();
        if !all.is_empty() {
            let all = all.into_iter().collect::<Vec<_>>().concat();
            self.push("", ComposedContent::Lines(all))?;
        }
        Ok(())
    }

    fn add_package(&mut self, name: &str, owner: Option<usize>) -> Result<(), ComposeError> {
        let (content, base) = match owner {
            Some(input) => self.selected(name, input)?,
            None => (ComposedContent::Lines(Vec::new()), None),
        };
        let added: Vec<usize> = (0..self.additions.len())
            .filter(|at| self.added[*at].contains(name))
            .collect();
        let removals: Vec<&Removal> = self
            .composition
            .remove
            .iter()
            .filter(|removal| removal.package == name)
            .collect();
        if added.is_empty() && removals.is_empty() {
            self.add_dependencies(name, &content, base)?;
            return self.push(name, content);
        }
        let base = match (content, base) {
            (ComposedContent::Lines(lines), _) => lines,
            (ComposedContent::Shard { input }, Some(lines)) => {
                lines.into_bytes().map_err(unreadable(&self.inputs[input], name))?
            }
            (ComposedContent::Shard { input }, None) => read_bytes(&mut self.inputs[input], name)?,
        };
        let mut edited = base.clone();
        for at in added {
            let lines = read_bytes(&mut self.additions[at], name)?;
            let rule = &self.composition.add[at];
            edited = edit::merge(name, &edited, &lines, rule.replace)?;
            let reason = format!("documents of {} are added", self.additions[at].name);
            self.explanation
                .decisions
                .push(Decision::of_package(name, true, reason));
        }
        for removal in removals {
            edited = edit::remove(name, &edited, removal, &mut self.explanation.notices)?;
            for bundle in &removal.bundles {
                let reason = "in remove".to_owned();
                let bundle = bundle.clone();
                self.explanation.decisions.push(Decision {
                    bundle,
                    ..Decision::of_package(name, false, reason)
                });
            }
        }
        edit::check(name, &base, &edited)?;
        let content = ComposedContent::Lines(edited);
        self.add_dependencies(name, &content, None)?;
        self.push(name, content)
    }

    /// Notes what a package of the result requires and provides. `whole` has the lines of a whole package that was read.
    fn add_dependencies(
        &mut self,
        name: &str,
        content: &ComposedContent,
        whole: Option<PackageLines<'_>>,
    ) -> Result<(), ComposeError> {
        if self.composition.dependencies == DependencyRule::Ignore {
            return Ok(());
        }
        let input = match content {
            ComposedContent::Lines(lines) => {
                let added = self.dependencies.add(name, &mut lines.as_slice().into());
                added.expect("lines in memory can be read");
                return Ok(());
            }
            ComposedContent::Shard { input } => &mut self.inputs[*input],
        };
        let mut lines = match whole {
            Some(lines) => lines,
            None => read(input, name)?,
        };
        self.dependencies.add(name, &mut lines).map_err(unreadable(input, name))
    }

    /// Takes along what the packages so far require. None of those that the composition names is widened or brought back.
    fn include(&mut self, named: &BTreeSet<String>) -> Result<(), ComposeError> {
        let mut includer = Includer::new(self.inputs, &mut self.dependencies, named);
        for name in includer.include_missing()? {
            let package = includer.package(&name)?;
            let decisions = &mut self.explanation.decisions;
            // The selections left the package out.
            decisions.retain(|decision| decision.kept || decision.package != name);
            decisions.extend(package.decisions);
            self.explanation.notices.extend(package.notices);
            let content = package.content;
            (self.sink)(ComposedPackage { name, content }).map_err(ComposeError::Sink)?;
        }
        Ok(())
    }

    /// Returns what an input's selection takes of a package, and the lines if they were read and taken whole.
    fn selected(
        &mut self,
        name: &str,
        input: usize,
    ) -> Result<(ComposedContent, Option<PackageLines<'static>>), ComposeError> {
        let catalog = &mut self.inputs[input];
        let whole = ComposedContent::Shard { input };
        let select = self.composition.inputs[input].select.as_ref();
        let Some(select) = select.filter(|select| !select.takes_whole(name)) else {
            let reason = format!("the whole package of {}", catalog.name);
            self.explanation
                .decisions
                .push(Decision::of_package(name, true, reason));
            return Ok((whole, None));
        };
        let mut lines = read(catalog, name)?;
        let selected = select.apply_to(name, &mut lines);
        let selected = selected.map_err(|source| ComposeError::Select(catalog.name.clone(), Box::new(source)))?;
        let Some(selected) = selected else {
            return Ok((whole, Some(lines)));
        };
        self.explanation.decisions.extend(selected.decisions);
        self.explanation.notices.extend(selected.notices);
        Ok(match selected.kept {
            Kept::Whole => (whole, Some(lines)),
            Kept::Lines(kept) => (ComposedContent::Lines(kept), None),
        })
    }

    fn push(&mut self, name: &str, content: ComposedContent) -> Result<(), ComposeError> {
        let name = name.to_owned();
        (self.sink)(ComposedPackage { name, content }).map_err(ComposeError::Sink)
    }
}
