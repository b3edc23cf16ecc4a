use std::collections::{BTreeMap, HashMap};
use std::env;
use std::io::{Read, Seek};
use std::sync::Arc;

use compose::{
    ComposeError, ComposedContent, Composition, Explanation, PackageSource, ReadError, ReadSeek,
};
use model::{ShardRef, Snapshot, decode_zstd_to};
use render::{Renderer, Rendering, Shard, StoredShards};
use tempfile::spooled_tempfile_in;
use work::Budget;

use super::pull::PublishedShards;
use crate::PollError;

/// Largest size of lines that are kept in memory, in bytes. Few packages are larger, and one of
/// them may have hundreds of megabytes.
const SPOOL_BYTES: usize = 8 << 20;

/// Catalog whose packages are read one by one. It blocks while it reads.
pub(crate) enum InputCatalog {
    /// State in a store.
    Published {
        name: String,
        shards: Box<PublishedShards>,
        snapshot: Arc<Snapshot>,
    },
    /// Files that were rendered.
    Rendered { name: String, rendering: Rendering },
}

/// Error for a package that was listed and is not there.
const ABSENT: &str = "the catalog has no such package";

impl InputCatalog {
    /// Returns the state, if it is a published one.
    pub(super) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        match self {
            Self::Published { snapshot, .. } => Some(snapshot.clone()),
            Self::Rendered { .. } => None,
        }
    }

    /// Gives whole packages to the renderer, without reading their lines if they are published.
    fn render_whole(
        &mut self,
        packages: &[String],
        renderer: &mut Renderer,
    ) -> Result<(), ReadError> {
        let Self::Published {
            shards, snapshot, ..
        } = self
        else {
            let mut packages = packages.iter();
            return packages
                .try_for_each(|package| render_lines(package, &mut self.read(package)?, renderer));
        };
        let mut metas = HashMap::new();
        for shard in shards.index(&snapshot.index)?.shards {
            metas.insert(shard.lines, shard.metas.into_owned());
        }
        for package in packages {
            let shard = shard_of(snapshot, package)?;
            let found = metas.remove(&shard.lines.sha256);
            renderer.stored_shard(
                shard,
                found.ok_or("the index of the catalog has no such package")?,
            );
        }
        Ok(())
    }
}

impl PackageSource for InputCatalog {
    fn name(&self) -> &str {
        match self {
            Self::Published { name, .. } | Self::Rendered { name, .. } => name,
        }
    }

    fn packages(&self) -> Vec<String> {
        match self {
            Self::Published { snapshot, .. } => {
                snapshot.shards().map(|shard| shard.name.clone()).collect()
            }
            Self::Rendered { rendering, .. } => rendering
                .shards()
                .iter()
                .map(|shard| shard.name.clone())
                .collect(),
        }
    }

    fn has(&self, package: &str) -> bool {
        match self {
            Self::Published { snapshot, .. } => shard_of(snapshot, package).is_ok(),
            Self::Rendered { rendering, .. } => rendered_shard(rendering, package).is_ok(),
        }
    }

    fn read(&mut self, package: &str) -> Result<Box<dyn ReadSeek>, ReadError> {
        match self {
            Self::Published {
                shards, snapshot, ..
            } => {
                let shard = shard_of(snapshot, package)?;
                decoded(&shards.load(&shard.stored)?, shard.lines.size)
            }
            Self::Rendered { rendering, .. } => {
                let shard = rendered_shard(rendering, package)?;
                decoded(&rendering.compressed(shard)?, shard.lines.size)
            }
        }
    }
}

fn shard_of<'a>(snapshot: &'a Snapshot, package: &str) -> Result<&'a ShardRef, ReadError> {
    let global = snapshot.global.as_ref().filter(|_| package.is_empty());
    Ok(global.or_else(|| snapshot.package(package)).ok_or(ABSENT)?)
}

fn rendered_shard<'a>(rendering: &'a Rendering, package: &str) -> Result<&'a Shard, ReadError> {
    let shards = rendering.shards();
    let at = shards.binary_search_by(|shard| shard.name.as_str().cmp(package));
    Ok(&shards[at.map_err(|_| ABSENT)?])
}

/// Decompresses the `size` bytes of the lines of a package.
fn decoded(compressed: &[u8], size: u64) -> Result<Box<dyn ReadSeek>, ReadError> {
    let mut lines = spooled_tempfile_in(SPOOL_BYTES, env::temp_dir());
    decode_zstd_to(compressed, size, &mut lines)?;
    lines.rewind()?;
    Ok(Box::new(lines))
}

/// Composes a catalog of inputs and additions, and renders it. Blocks: call it where that is
/// allowed. Packages that are taken whole from a published catalog are neither read nor compressed,
/// if `renderer` knows the shards of that catalog.
///
/// # Errors
/// [`PollError::Compose`] if the composition does not fit its inputs, and the errors of rendering.
pub(super) fn render_composition(
    composition: &Composition,
    catalogs: &mut [InputCatalog],
    explanation: &mut Explanation,
    mut renderer: Renderer,
    budget: &Budget,
) -> Result<Rendering, PollError> {
    // Packages that are taken whole, by the place of their catalog.
    let mut whole = BTreeMap::<usize, Vec<String>>::new();
    compose::compose(
        composition,
        catalogs,
        explanation,
        &mut |package: &str, content: ComposedContent<'_>| match content {
            ComposedContent::Shard { input } => {
                whole.entry(input).or_default().push(package.to_owned());
                Ok(())
            }
            ComposedContent::Lines(lines) => render_lines(package, lines, &mut renderer),
        },
        budget,
    )?;
    for (input, packages) in &whole {
        let catalog = &mut catalogs[*input];
        let rendered = catalog.render_whole(packages, &mut renderer);
        rendered.map_err(|source| ComposeError::Read {
            input: catalog.name().to_owned(),
            package: packages.join(", "),
            source,
        })?;
    }
    Ok(renderer.finish()?)
}

/// Renders the canonical lines of one package as a file of its own.
fn render_lines(
    package: &str,
    lines: &mut dyn Read,
    renderer: &mut Renderer,
) -> Result<(), ReadError> {
    let path = match package {
        "" => "catalog.json".to_owned(),
        package => format!("{package}/catalog.json"),
    };
    Ok(renderer.file(&path, lines)?)
}
