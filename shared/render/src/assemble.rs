use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::Arc,
};

use fbc::{IndexIgnore, walk_order};
use work::for_each;

use crate::{
    FileProblem, RenderError, Rendering, Shard,
    context::{FileFailure, RenderContext, WorkerResults},
    error::shown,
    fragment::Fragment,
    known::{ChunkLines, chunk_lines},
    renderer::is_ignore_file,
};

impl WorkerResults {
    /// Puts the results of all workers in order. `stored` are Packages that are taken whole from the store.
    pub(crate) fn assemble(
        mut self,
        ignore: &IndexIgnore,
        links: BTreeMap<String, String>,
        mut stored: Vec<Shard>,
        context: Arc<RenderContext>,
    ) -> Result<Rendering, RenderError> {
        self.follow_links(links, &context)?;
        let mut ignored = IgnoredPaths {
            ignore,
            known: HashMap::new(),
            context: &context,
        };
        for fragment in mem::take(&mut self.fragments) {
            if !ignored.contains(&fragment.path)? {
                self.fragments.push(fragment);
            }
        }
        for failure in mem::take(&mut self.failures) {
            if !ignored.contains(&failure.path)? {
                self.failures.push(failure);
            }
        }
        if !self.failures.is_empty() {
            return Err(invalid(self.failures));
        }
        let (mut shards, chunks) = shards(self.fragments, &context)?;
        // Stable, so that those of files come first.
        shards.append(&mut stored);
        shards.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        shards.dedup_by(|later, first| later.name == first.name);
        let packages = shards.iter().filter(|shard| !shard.name.is_empty()).count() as u64;
        let last = shards.last().map_or("", |shard| shard.name.as_str());
        context.usage.packages(packages, last);
        context.check_limits()?;
        Ok(Rendering {
            shards,
            chunks,
            context,
        })
    }

    /// Gives each link the fragments and the failures of its target, under the link's own path.
    fn follow_links(&mut self, links: BTreeMap<String, String>, context: &RenderContext) -> Result<(), RenderError> {
        if links.is_empty() {
            return Ok(());
        }
        let fragments = by_path(mem::take(&mut self.fragments), |fragment| &fragment.path);
        let failures = by_path(mem::take(&mut self.failures), |failure| &failure.path);
        for (path, target) in links {
            context.check_budget()?;
            // An ignore file was not read as FBC, and FBC was not read as an ignore file.
            if is_ignore_file(&path) || is_ignore_file(&target) {
                return Err(linked_ignore_file(path, &target));
            }
            let path: Arc<str> = path.into();
            for mut fragment in fragments.get(target.as_str()).into_iter().flatten().cloned() {
                context.usage.add(&path, fragment.metas.len() as u64, fragment.size);
                fragment.path.clone_from(&path);
                self.fragments.push(fragment);
            }
            for mut failure in failures.get(target.as_str()).into_iter().flatten().cloned() {
                // A failure counts as one document, as it did where it was found.
                context.usage.add(&path, 1, 0);
                failure.path.clone_from(&path);
                self.failures.push(failure);
            }
            context.check_limits()?;
        }
        self.fragments.extend(fragments.into_values().flatten());
        self.failures.extend(failures.into_values().flatten());
        Ok(())
    }
}

/// The paths that are not part of the catalog. Each is compared with the patterns once.
struct IgnoredPaths<'a> {
    ignore: &'a IndexIgnore,
    known: HashMap<Arc<str>, bool>,
    context: &'a RenderContext,
}

impl IgnoredPaths<'_> {
    fn contains(&mut self, path: &Arc<str>) -> Result<bool, RenderError> {
        if let Some(known) = self.known.get(path) {
            return Ok(*known);
        }
        // The comparison of one path is short, because its steps are limited.
        self.context.check_budget()?;
        let excluded = self.ignore.excludes(path, &self.context.settings.budget);
        let excluded = excluded.map_err(|error| RenderError::over_budget(error, path))?;
        self.known.insert(path.clone(), excluded);
        Ok(excluded)
    }
}

fn by_path<T>(all: Vec<T>, path: impl Fn(&T) -> &Arc<str>) -> HashMap<Arc<str>, Vec<T>> {
    let mut by_path: HashMap<Arc<str>, Vec<T>> = HashMap::new();
    for one in all {
        by_path.entry(path(&one).clone()).or_default().push(one);
    }
    by_path
}

fn linked_ignore_file(path: String, target: &str) -> RenderError {
    let name = IndexIgnore::FILE_NAME;
    let reason = format!("is a link to {}; an {name} must be a plain file", shown(target));
    RenderError::of_file(path, reason)
}

fn invalid(mut failures: Vec<FileFailure>) -> RenderError {
    failures.sort_by(|a, b| walk_order(&a.path, &b.path).then(a.part.cmp(&b.part)));
    let problems = failures.into_iter().map(|failure| FileProblem {
        path: shown(&failure.path),
        reason: failure.reason,
        limit: failure.limit,
    });
    RenderError::Invalid {
        problems: problems.collect(),
    }
}

/// Groups the fragments by Package, in byte order of the names: the global group has an empty name and comes first. Returns the lines of
/// their chunks, too.
fn shards(mut fragments: Vec<Fragment>, context: &RenderContext) -> Result<(Vec<Shard>, ChunkLines), RenderError> {
    fragments.sort_by(|a, b| {
        let place = || walk_order(&a.path, &b.path).then(a.part.cmp(&b.part));
        a.group.as_bytes().cmp(b.group.as_bytes()).then_with(place)
    });
    let (mut groups, mut packages) = (Vec::new(), 0);
    let mut rest = fragments.into_iter().peekable();
    while let Some(first) = rest.next() {
        let group = first.group.clone();
        packages += u64::from(!group.is_empty());
        context.usage.packages(packages, &group);
        let mut members = vec![first];
        while let Some(next) = rest.next_if(|next| next.group == group) {
            members.push(next);
        }
        groups.push(members);
    }
    context.check_limits()?;
    let chunks = chunk_lines(&groups);
    let size = |group: &Vec<Fragment>| group.iter().map(|fragment| fragment.size).sum();
    let shards = for_each(groups, context.settings.workers, size, |group| {
        context.check_budget()?;
        Shard::join(group, context)
    });
    let shards = shards.into_iter().collect::<Result<Vec<_>, _>>()?;
    let chunks = chunks.into_iter().map(|(chunk, lines)| {
        let lines = lines.into_iter();
        let lines = lines.map(|(number, range)| (shards[number].lines.sha256, range));
        (chunk, lines.collect())
    });
    let chunks = chunks.collect();
    Ok((shards, chunks))
}
