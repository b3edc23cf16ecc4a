use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Composition, ConflictRule, Decision, DependencyRule, Explanation, Kept, PackageLines, PackageSource, ReadError,
    Removal, SelectError, dependencies::Dependencies, edit, include::Includer, input::NamedCatalog, rewrite::lines,
};

/// Receiver of the packages of a composed catalog: the documents without a package first, then the packages in byte order,
/// and after them those of [`DependencyRule::Include`], in byte order too.
pub type PackageSink<'a> = dyn FnMut(ComposedPackage) -> Result<(), ReadError> + 'a;

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

impl ComposedContent {
    pub(crate) fn new(input: usize, kept: Kept) -> Self {
        match kept {
            Kept::Whole => Self::Shard { input },
            Kept::Lines(lines) => Self::Lines(lines),
        }
    }
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

/// Composes a catalog of `catalogs`: one for each input, then one for each addition. Calls `sink` with each package, so that only
/// one is held in memory at a time. Each package of an input is read at most once, and a second time if it is taken along. One
/// that is taken whole is read only to check its dependencies.
///
/// # Errors
/// Fails if the selections, additions or removals do not fit the inputs, if the result would not be valid, or with the error of
/// `sink`. The packages that `sink` has are then no catalog.
pub fn compose<C: PackageSource>(
    composition: &Composition,
    catalogs: &mut [C],
    sink: &mut PackageSink<'_>,
) -> Result<Explanation, ComposeError> {
    composition.check()?;
    let named = composition.names().zip(catalogs);
    let mut inputs: Vec<_> = named.map(|(name, catalog)| NamedCatalog::new(name, catalog)).collect();
    let mut composer = Composer {
        composition,
        additions: inputs.split_off(composition.inputs.len()),
        inputs,
        dependencies: Dependencies::default(),
        explanation: Explanation::default(),
        sink,
    };
    let owners = composer.owners()?;
    composer.add_global()?;
    let added = composer.additions.iter().flat_map(|addition| &addition.packages);
    let added = added.filter(|name| !name.is_empty());
    let names: BTreeSet<String> = owners.keys().chain(added).cloned().collect();
    for removal in &composition.remove {
        if !names.contains(&removal.package) {
            let what = "document".to_owned();
            return Err(ComposeError::NothingToRemove(removal.package.clone(), what));
        }
    }
    for name in &names {
        let mut removals = composition.remove.iter();
        if !removals.any(|removal| removal.package == *name && removal.is_whole()) {
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

struct Composer<'a, 's, C> {
    composition: &'a Composition,
    inputs: Vec<NamedCatalog<'a, C>>,
    additions: Vec<NamedCatalog<'a, C>>,
    dependencies: Dependencies,
    explanation: Explanation,
    sink: &'a mut PackageSink<'s>,
}

impl<C: PackageSource> Composer<'_, '_, C> {
    /// Returns the input from which each package is taken.
    fn owners(&mut self) -> Result<BTreeMap<String, usize>, ComposeError> {
        let mut owners: BTreeMap<String, usize> = BTreeMap::new();
        for (at, (input, catalog)) in self.composition.inputs.iter().zip(&self.inputs).enumerate() {
            let mut selected = input.select.iter().flat_map(|select| &select.packages);
            if let Some(absent) = selected.find(|selection| !catalog.packages.contains(&selection.name)) {
                let input = catalog.name.to_owned();
                return Err(ComposeError::NoPackage(input, absent.name.clone()));
            }
            for package in catalog.packages.iter().filter(|name| !name.is_empty()) {
                let why = match owners.get(package) {
                    _ if input.select.as_ref().is_some_and(|select| !select.takes(package)) => "not selected from",
                    Some(_) if self.composition.conflicts == ConflictRule::First => {
                        "an earlier input has it too; not from"
                    }
                    Some(&first) => {
                        let [first, second] = [first, at].map(|at| self.inputs[at].name.to_owned());
                        return Err(ComposeError::Conflict(package.clone(), first, second));
                    }
                    None => {
                        owners.insert(package.clone(), at);
                        continue;
                    }
                };
                let reason = format!("{why} {}", catalog.name);
                self.explanation.decide(package, false, reason);
            }
        }
        Ok(owners)
    }

    /// Keeps the documents without a package of all inputs, equal lines once.
    fn add_global(&mut self) -> Result<(), ComposeError> {
        let mut texts: BTreeSet<Vec<u8>> = BTreeSet::new();
        for addition in self
            .additions
            .iter_mut()
            .filter(|addition| addition.packages.contains(""))
        {
            texts.insert(addition.read_bytes("")?);
        }
        let inputs = self.inputs.iter().enumerate();
        let inputs = inputs.filter_map(|(at, input)| input.packages.contains("").then_some(at));
        let inputs: Vec<usize> = inputs.collect();
        if let ([input], true) = (inputs.as_slice(), texts.is_empty()) {
            return self.push("", ComposedContent::Shard { input: *input });
        }
        for input in &inputs {
            texts.insert(self.inputs[*input].read_bytes("")?);
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
        let is_added = self.additions.iter().any(|addition| addition.packages.contains(name));
        let removals = self.composition.remove.iter();
        let removals: Vec<&Removal> = removals.filter(|removal| removal.package == name).collect();
        if !is_added && removals.is_empty() {
            self.add_dependencies(name, &content, base)?;
            return self.push(name, content);
        }
        let base = match (content, base) {
            (ComposedContent::Lines(lines), _) => lines,
            (ComposedContent::Shard { input }, Some(lines)) => {
                let bytes = lines.into_bytes();
                bytes.map_err(|source| self.inputs[input].unreadable(name, source))?
            }
            (ComposedContent::Shard { input }, None) => self.inputs[input].read_bytes(name)?,
        };
        let mut edited = base.clone();
        let additions = self.composition.add.iter().zip(&mut self.additions);
        for (addition, catalog) in additions.filter(|(_, catalog)| catalog.packages.contains(name)) {
            let lines = catalog.read_bytes(name)?;
            edited = edit::merge(name, &edited, &lines, addition.replace)?;
            let reason = format!("documents of {} are added", catalog.name);
            self.explanation.decide(name, true, reason);
        }
        for removal in removals {
            edited = edit::remove(name, &edited, removal, &mut self.explanation.notices)?;
            for bundle in &removal.bundles {
                self.explanation.decisions.push(Decision {
                    bundle: bundle.clone(),
                    ..Decision::of_package(name, false, "in remove".to_owned())
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
            None => input.read(name)?,
        };
        let added = self.dependencies.add(name, &mut lines);
        added.map_err(|source| input.unreadable(name, source))
    }

    /// Takes along what the packages so far require. None of those that the composition names is widened or brought back.
    fn include(&mut self, named: &BTreeSet<String>) -> Result<(), ComposeError> {
        let mut includer = Includer::new(&mut self.inputs, &mut self.dependencies, named);
        for name in includer.include_missing()? {
            let (input, package) = includer.package(&name)?;
            let decisions = &mut self.explanation.decisions;
            // The selections left the package out.
            decisions.retain(|decision| decision.kept || decision.package != name);
            decisions.extend(package.decisions);
            self.explanation.notices.extend(package.notices);
            let content = ComposedContent::new(input, package.kept);
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
            self.explanation.decide(name, true, reason);
            return Ok((whole, None));
        };
        let mut lines = catalog.read(name)?;
        let selected = select.apply_to(name, &mut lines);
        let selected = selected.map_err(|source| ComposeError::Select(catalog.name.to_owned(), Box::new(source)))?;
        let Some(selected) = selected else {
            return Ok((whole, Some(lines)));
        };
        self.explanation.decisions.extend(selected.decisions);
        self.explanation.notices.extend(selected.notices);
        let lines = (selected.kept == Kept::Whole).then_some(lines);
        Ok((ComposedContent::new(input, selected.kept), lines))
    }

    fn push(&mut self, name: &str, content: ComposedContent) -> Result<(), ComposeError> {
        let name = name.to_owned();
        (self.sink)(ComposedPackage { name, content }).map_err(ComposeError::Sink)
    }
}
