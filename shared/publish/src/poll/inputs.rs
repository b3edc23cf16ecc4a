use std::{collections::HashMap, env, io::Read, path::PathBuf, sync::Arc};

use compose::{
    ComposedContent, ComposedPackage, Composition, Explanation, NamedCatalog, PackageLines, PackageSource, ReadError,
    compose_to,
};
use model::{Index, IndexedMeta, Sha256, ShardRef, Snapshot, decode_zstd};
use render::{Renderer, Rendering, StoredShards};
use store::{Store, read_stored};
use tokio::runtime::Handle;

use super::stored_shards::PublishedShards;
use crate::{PollError, open_verified};

/// Catalog whose packages are read one by one. It blocks while it reads.
pub enum InputCatalog {
    /// State in a store.
    Published(PublishedCatalog),
    /// Files that were rendered.
    Rendered(Rendering),
}

/// State of a catalog in a store.
pub struct PublishedCatalog {
    store: Arc<dyn Store>,
    runtime: Handle,
    snapshot: Arc<Snapshot>,
    /// Folder for temporary files.
    temp_dir: PathBuf,
}

/// Catalog with the name by which messages call it.
pub struct NamedInput {
    /// Name for messages: as the composition writes it.
    pub name: String,
    /// Content of the catalog.
    pub catalog: InputCatalog,
}

/// Rendered composition.
pub struct ComposedRendering {
    /// Catalog that was composed.
    pub rendering: Rendering,
    /// Explanation of what is in and what is not.
    pub explanation: Explanation,
}

impl InputCatalog {
    /// Returns a published state. Must be called inside a runtime; what reads it must run on a thread that may block.
    pub fn published(store: Arc<dyn Store>, snapshot: Arc<Snapshot>) -> Self {
        Self::Published(PublishedCatalog {
            store,
            runtime: Handle::current(),
            snapshot,
            temp_dir: env::temp_dir(),
        })
    }
}

impl PackageSource for InputCatalog {
    fn packages(&self) -> Vec<String> {
        match self {
            Self::Published(published) => published.snapshot.shards().map(|shard| shard.name.clone()).collect(),
            Self::Rendered(rendering) => rendering.shards().iter().map(|shard| shard.name.clone()).collect(),
        }
    }

    fn read(&mut self, package: &str) -> Result<PackageLines<'static>, ReadError> {
        const ABSENT: &str = "the catalog has no such package";
        match self {
            Self::Published(published) => {
                let shard = published.shard(package).ok_or(ABSENT)?;
                let lines = open_verified(&*published.store, shard, &published.temp_dir);
                Ok(PackageLines::new(published.runtime.block_on(lines)?))
            }
            Self::Rendered(rendering) => {
                let shard = rendering.shards().iter().find(|shard| shard.name == package);
                let shard = shard.ok_or(ABSENT)?;
                let lines = decode_zstd(&rendering.compressed(shard)?, shard.lines.size)?;
                Ok(PackageLines::from(lines))
            }
        }
    }
}

impl PublishedCatalog {
    fn shard(&self, package: &str) -> Option<&ShardRef> {
        self.snapshot.shards().find(|shard| shard.name == package)
    }

    /// Gives whole packages to the renderer, without reading their lines.
    fn render_whole(&self, packages: &[String], renderer: &mut Renderer) -> Result<(), ReadError> {
        let index = self
            .runtime
            .block_on(read_stored::<Index>(&*self.store, &self.snapshot.index))?;
        let shards = index.shards.into_iter().map(|shard| (shard.lines, shard.metas));
        let mut metas: HashMap<Sha256, Vec<IndexedMeta>> = shards.collect();
        for package in packages {
            let shard = self.shard(package).ok_or("the catalog has no such package")?;
            let metas = metas
                .remove(&shard.lines.sha256)
                .ok_or("the index of the catalog has no such package")?;
            renderer.stored_shard(shard, metas);
        }
        Ok(())
    }
}

/// Returns the shards of those inputs that are in `store`, so that [`render_composition`] takes whole packages as they are.
pub fn input_shards(store: Arc<dyn Store>, inputs: &[NamedInput]) -> Arc<dyn StoredShards> {
    let snapshots = inputs.iter().filter_map(|input| match &input.catalog {
        InputCatalog::Published(published) => Some(&*published.snapshot),
        InputCatalog::Rendered(_) => None,
    });
    Arc::new(PublishedShards::new(store, snapshots))
}

/// Composes a catalog and renders it. Blocks: call it where that is allowed. Packages that are taken whole from a published
/// catalog are neither read nor compressed, if `renderer` knows the shards of that catalog.
///
/// # Errors
/// [`PollError::Compose`] if the composition does not fit its inputs, and the errors of rendering.
pub fn render_composition(
    composition: &Composition,
    inputs: &mut [NamedInput],
    additions: &mut [NamedInput],
    mut renderer: Renderer,
) -> Result<ComposedRendering, PollError> {
    let mut whole: Vec<Vec<String>> = vec![Vec::new(); inputs.len()];
    let mut sink = |package: ComposedPackage| match package.content {
        ComposedContent::Shard { input } => {
            whole[input].push(package.name);
            Ok(())
        }
        ComposedContent::Lines(lines) => render_lines(&package.name, &mut lines.as_slice(), &mut renderer),
    };
    let explanation = compose_to(
        composition,
        &mut named_catalogs(inputs),
        &mut named_catalogs(additions),
        &mut sink,
    )?;
    for (input, packages) in inputs
        .iter_mut()
        .zip(&whole)
        .filter(|(_, packages)| !packages.is_empty())
    {
        let rendered = match &input.catalog {
            InputCatalog::Published(published) => published.render_whole(packages, &mut renderer),
            InputCatalog::Rendered(_) => packages.iter().try_for_each(|package| {
                let mut lines = input.catalog.read(package)?;
                render_lines(package, &mut lines, &mut renderer)
            }),
        };
        rendered.map_err(|source| compose::ComposeError::Read {
            input: input.name.clone(),
            package: packages.join(", "),
            source,
        })?;
    }
    Ok(ComposedRendering {
        rendering: renderer.finish()?,
        explanation,
    })
}

/// Renders the canonical lines of one package as a file of its own.
fn render_lines(package: &str, lines: &mut dyn Read, renderer: &mut Renderer) -> Result<(), ReadError> {
    let path = match package {
        "" => "catalog.json".to_owned(),
        package => format!("{package}/catalog.json"),
    };
    Ok(renderer.file(&path, lines)?)
}

/// Returns the catalogs as a composition takes them.
pub fn named_catalogs(inputs: &mut [NamedInput]) -> Vec<NamedCatalog<'_>> {
    let named = inputs.iter_mut().map(|input| NamedCatalog {
        name: input.name.clone(),
        packages: &mut input.catalog,
    });
    named.collect()
}
