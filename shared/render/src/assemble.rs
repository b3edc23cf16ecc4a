use std::{collections::BTreeMap, mem, sync::Arc};

use fbc::{IndexIgnore, walk_order};

use crate::{
    Problem, RenderError, Rendering, Shard,
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
        self.follow_links()?;
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
    fn follow_links(&mut self) -> Result<(), RenderError> {
        for (path, target) in mem::take(&mut self.links) {
            // What an ignore file says was not read as FBC, nor the other way round.
            if is_ignore_file(&path) || is_ignore_file(&target) {
                let reason = format!(
                    "is a link to {target}; an {} must be a plain file",
                    IndexIgnore::FILE_NAME
                );
                return Err(RenderError::Invalid {
                    problems: vec![Problem { path, reason }],
                });
            }
            let path: Arc<str> = path.into();
            let fragments = self.fragments.iter().filter(|fragment| *fragment.path == *target);
            let fragments: Vec<_> = fragments
                .map(|fragment| Fragment {
                    path: path.clone(),
                    ..fragment.clone()
                })
                .collect();
            let failures = self.failures.iter().filter(|failure| *failure.path == *target);
            let failures: Vec<_> = failures
                .map(|failure| Failure {
                    path: path.clone(),
                    part: failure.part,
                    reason: failure.reason.clone(),
                })
                .collect();
            self.fragments.extend(fragments);
            self.failures.extend(failures);
        }
        Ok(())
    }
}

fn invalid(mut failures: Vec<Failure>) -> RenderError {
    failures.sort_by(|a, b| walk_order(&a.path, &b.path).then(a.part.cmp(&b.part)));
    let problems = failures.into_iter().map(|failure| Problem {
        path: failure.path.to_string(),
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
    let mut shards = Vec::new();
    let mut rest = fragments.into_iter().peekable();
    while let Some(first) = rest.next() {
        let group = first.group.clone();
        let mut members = vec![first];
        while let Some(next) = rest.next_if(|next| next.group == group) {
            members.push(next);
        }
        shards.push(Shard::join(&members, shop)?);
    }
    Ok(shards)
}
