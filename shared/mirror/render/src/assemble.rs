use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fbc::IndexIgnore;
use work::for_each;

use crate::context::{RenderContext, RenderedChunk, RenderedFiles};
use crate::fragment::{ChunkPlace, Fragment};
use crate::{RenderError, Rendering, Shard, error::shown};

/// Puts the files in order. `stored` are Packages that are taken whole from the store.
pub(crate) fn assemble(
    mut files: RenderedFiles,
    ignore: &IndexIgnore,
    links: BTreeMap<String, String>,
    mut stored: Vec<Shard>,
    context: Arc<RenderContext>,
) -> Result<Rendering, RenderError> {
    follow_links(&mut files, links, &context)?;
    let mut chunks = Vec::new();
    for (path, rendered) in files {
        // The comparison of one path is short, because its steps are limited.
        context.check_budget()?;
        let excluded = ignore.excludes(&path, &context.settings.budget);
        if !excluded.map_err(|error| RenderError::over_budget(error, &path))? {
            chunks.extend(rendered);
        }
    }
    let fragments = fragments(chunks)?;
    // Counted before they are grouped, which takes memory for each.
    let mut names = BTreeSet::new();
    names.extend(fragments.iter().map(|fragment| &*fragment.group));
    names.extend(stored.iter().map(|shard| shard.name.as_str()));
    names.remove("");
    context
        .usage
        .packages(names.len() as u64, names.last().unwrap_or(&""));
    context.usage.check_limits()?;
    // The global group has an empty name and comes first.
    let mut packages = BTreeMap::<Arc<str>, Vec<Fragment>>::new();
    for fragment in fragments {
        packages
            .entry(fragment.group.clone())
            .or_default()
            .push(fragment);
    }
    let joined = for_each(
        packages.into_values().collect(),
        context.settings.workers,
        |fragments: &Vec<Fragment>| fragments.iter().map(|fragment| fragment.size).sum(),
        |fragments| {
            context.check_budget()?;
            Shard::join(fragments, &context)
        },
    );
    let mut shards = joined.into_iter().collect::<Result<Vec<_>, _>>()?;
    // Stable, so that those of files come first.
    shards.append(&mut stored);
    shards.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    shards.dedup_by(|later, first| later.name == first.name);
    Ok(Rendering { shards, context })
}

/// Returns the fragments in the order of their files, or the problems of all files.
fn fragments(mut chunks: Vec<RenderedChunk>) -> Result<Vec<Fragment>, RenderError> {
    chunks.sort_by(|a, b| a.place.walk_order(&b.place));
    let mut fragments = Vec::new();
    let mut problems = Vec::new();
    for chunk in chunks {
        match chunk.fragments {
            Ok(own) => fragments.extend(own),
            Err(problem) => problems.push(problem),
        }
    }
    match problems[..] {
        [] => Ok(fragments),
        _ => Err(RenderError::Invalid { problems }),
    }
}

/// Returns true for the path of an ignore file.
pub(crate) fn is_ignore_file(path: &str) -> bool {
    path.rsplit('/').next() == Some(IndexIgnore::FILE_NAME)
}

/// Gives each link the chunks of its target, under the link's own path.
fn follow_links(
    files: &mut RenderedFiles,
    links: BTreeMap<String, String>,
    context: &RenderContext,
) -> Result<(), RenderError> {
    let mut linked = Vec::new();
    for (path, target) in links {
        context.check_budget()?;
        // An ignore file was not read as FBC, and FBC was not read as an ignore file.
        if is_ignore_file(&path) || is_ignore_file(&target) {
            let name = IndexIgnore::FILE_NAME;
            let reason = format!(
                "is a link to {}; an {name} must be a plain file",
                shown(&target)
            );
            return Err(RenderError::of_file(path, reason));
        }
        let path: Arc<str> = path.into();
        let chunks = files.get(target.as_str()).into_iter().flatten();
        linked.extend(chunks.map(|chunk| chunk.linked(&path, context)));
        context.usage.check_limits()?;
    }
    for chunk in linked {
        files
            .entry(chunk.place.path.clone())
            .or_default()
            .push(chunk);
    }
    Ok(())
}

impl RenderedChunk {
    /// Returns the chunk of a link to the file, whose documents count once more.
    fn linked(&self, path: &Arc<str>, context: &RenderContext) -> Self {
        let place = Arc::new(ChunkPlace {
            path: path.clone(),
            ..ChunkPlace::clone(&self.place)
        });
        let mut fragments = self.fragments.clone();
        match &mut fragments {
            Ok(fragments) => {
                for fragment in fragments {
                    context
                        .usage
                        .add(path, fragment.metas.len() as u64, fragment.size);
                    fragment.place = place.clone();
                }
            }
            Err(problem) => {
                // A problem counts as one document, as it did where it was found.
                context.usage.add(path, 1, 0);
                problem.path = shown(path);
            }
        }
        Self { place, fragments }
    }
}
