use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::Arc,
};

use fbc::{IndexIgnore, walk_order};

use crate::{
    Problem, RenderError, Rendering, Shard,
    error::shown,
    fragment::Fragment,
    renderer::is_ignore_file,
    worker::{Failure, Shop},
};

/// Everything the workers found, to be put in order.
pub(crate) struct Assembly {
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) ignore: IndexIgnore,
    pub(crate) links: BTreeMap<String, String>,
}

impl Assembly {
    pub(crate) fn finish(mut self, shop: Arc<Shop>) -> Result<Rendering, RenderError> {
        self.follow_links(&shop)?;
        let ignore = &self.ignore;
        self.fragments.retain(|fragment| !ignore.excludes(&fragment.path));
        self.failures.retain(|failure| !ignore.excludes(&failure.path));
        if !self.failures.is_empty() {
            return Err(invalid(self.failures));
        }
        Ok(Rendering {
            shards: shards(self.fragments, &shop)?,
            shop,
        })
    }

    /// A link has the fragments and the failures of its target, under its own path.
    fn follow_links(&mut self, shop: &Shop) -> Result<(), RenderError> {
        let links = mem::take(&mut self.links);
        if links.is_empty() {
            return Ok(());
        }
        let fragments = by_path(mem::take(&mut self.fragments), |fragment| &fragment.path);
        let failures = by_path(mem::take(&mut self.failures), |failure| &failure.path);
        for (path, target) in links {
            // What an ignore file says was not read as FBC, nor the other way round.
            if is_ignore_file(&path) || is_ignore_file(&target) {
                return Err(no_link(path, &target));
            }
            let path: Arc<str> = path.into();
            for fragment in fragments.get(target.as_str()).into_iter().flatten() {
                shop.count.add(&path, fragment.metas.len() as u64, fragment.size);
                self.fragments.push(fragment.at(&path));
            }
            for failure in failures.get(target.as_str()).into_iter().flatten() {
                // Counted as where it was found.
                shop.count.add(&path, 1, 0);
                self.failures.push(failure.at(&path));
            }
            within_limits(shop)?;
        }
        self.fragments.extend(fragments.into_values().flatten());
        self.failures.extend(failures.into_values().flatten());
        Ok(())
    }
}

fn by_path<T>(all: Vec<T>, path: impl Fn(&T) -> &Arc<str>) -> HashMap<Arc<str>, Vec<T>> {
    let mut by_path: HashMap<Arc<str>, Vec<T>> = HashMap::new();
    for one in all {
        by_path.entry(path(&one).clone()).or_default().push(one);
    }
    by_path
}

fn no_link(path: String, target: &str) -> RenderError {
    let name = IndexIgnore::FILE_NAME;
    let reason = format!("is a link to {}; an {name} must be a plain file", shown(target));
    RenderError::Invalid {
        problems: vec![Problem { path, reason }],
    }
}

fn within_limits(shop: &Shop) -> Result<(), RenderError> {
    shop.count
        .exceeded()
        .map_or(Ok(()), |limit| Err(RenderError::Limit(limit)))
}

fn invalid(mut failures: Vec<Failure>) -> RenderError {
    failures.sort_by(|a, b| walk_order(&a.path, &b.path).then(a.part.cmp(&b.part)));
    let problems = failures.into_iter().map(|failure| Problem {
        path: shown(&failure.path),
        reason: failure.reason,
    });
    RenderError::Invalid {
        problems: problems.collect(),
    }
}

/// Groups by Package in byte order of the names, which puts the global group, whose name is empty, first.
fn shards(mut fragments: Vec<Fragment>, shop: &Shop) -> Result<Vec<Shard>, RenderError> {
    fragments.sort_by(|a, b| {
        let group = a.group.as_bytes().cmp(b.group.as_bytes());
        group
            .then_with(|| walk_order(&a.path, &b.path))
            .then(a.part.cmp(&b.part))
    });
    let (mut shards, mut packages) = (Vec::new(), 0);
    let mut rest = fragments.into_iter().peekable();
    while let Some(first) = rest.next() {
        let group = first.group.clone();
        let mut members = vec![first];
        while let Some(next) = rest.next_if(|next| next.group == group) {
            members.push(next);
        }
        packages += u64::from(!group.is_empty());
        shop.count.packages(packages, &group);
        within_limits(shop)?;
        shards.push(Shard::join(&members, shop)?);
    }
    Ok(shards)
}
