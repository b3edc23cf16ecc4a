use std::{
    collections::HashMap,
    env,
    io::{Read, Seek},
    path::PathBuf,
    sync::Arc,
};

use compose::{
    ComposeError, ComposedContent, ComposedPackage, Composition, Explanation, PackageSource, ReadError, ReadSeek,
};
use model::{Index, IndexedMeta, Sha256, ShardRef, Snapshot, decode_zstd_to};
use render::{Renderer, Rendering};
use store::{Store, read_lines, read_stored};
use tempfile::spooled_tempfile_in;
use tokio::runtime::Handle;
use work::Budget;

use crate::PollError;

/// Largest size of lines that are kept in memory, in bytes. Few packages are larger, and one of them may have hundreds of megabytes.
const SPOOL_BYTES: usize = 8 << 20;

/// Catalog whose packages are read one by one. It blocks while it reads.
pub(crate) enum InputCatalog {
    /// State in a store.
    Published(PublishedCatalog),
    /// Files that were rendered.
    Rendered(Rendering),
}

/// State of a catalog in a store.
pub(crate) struct PublishedCatalog {
    store: Arc<dyn Store>,
    runtime: Handle,
    snapshot: Arc<Snapshot>,
    /// Folder for temporary files.
    temp_dir: PathBuf,
}

impl InputCatalog {
    /// Returns a published state. Must be called inside a runtime; what reads it must run on a thread that may block.
    pub(crate) fn published(store: Arc<dyn Store>, snapshot: Arc<Snapshot>) -> Self {
        Self::Published(PublishedCatalog {
            store,
            runtime: Handle::current(),
            snapshot,
            temp_dir: env::temp_dir(),
        })
    }

    /// Gives whole packages to the renderer.
    fn render_whole(&mut self, packages: &[String], renderer: &mut Renderer) -> Result<(), ReadError> {
        if let Self::Published(published) = self {
            return published.render_whole(packages, renderer);
        }
        packages
            .iter()
            .try_for_each(|package| render_lines(package, &mut self.read(package)?, renderer))
    }
}

impl PackageSource for InputCatalog {
    fn packages(&self) -> Vec<String> {
        match self {
            Self::Published(published) => published.snapshot.shards().map(|shard| shard.name.clone()).collect(),
            Self::Rendered(rendering) => rendering.shards().iter().map(|shard| shard.name.clone()).collect(),
        }
    }

    fn read(&mut self, package: &str) -> Result<Box<dyn ReadSeek>, ReadError> {
        const ABSENT: &str = "the catalog has no such package";
        match self {
            Self::Published(published) => {
                let shard = published.shard(package).ok_or(ABSENT)?;
                let file = spooled_tempfile_in(SPOOL_BYTES, &published.temp_dir);
                let lines = read_lines(&*published.store, shard, file);
                let mut lines = published.runtime.block_on(lines)?;
                lines.rewind()?;
                Ok(Box::new(lines))
            }
            Self::Rendered(rendering) => {
                let at = rendering
                    .shards()
                    .binary_search_by(|shard| shard.name.as_str().cmp(package));
                let shard = &rendering.shards()[at.map_err(|_| ABSENT)?];
                let mut lines = spooled_tempfile_in(SPOOL_BYTES, env::temp_dir());
                decode_zstd_to(&rendering.compressed(shard)?, shard.lines.size, &mut lines)?;
                lines.rewind()?;
                Ok(Box::new(lines))
            }
        }
    }
}

impl PublishedCatalog {
    fn shard(&self, package: &str) -> Option<&ShardRef> {
        let global = self.snapshot.global.as_ref().filter(|_| package.is_empty());
        global.or_else(|| self.snapshot.package(package))
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

/// Composes a catalog of inputs and additions, and renders it. Blocks: call it where that is allowed. Packages that are taken whole
/// from a published catalog are neither read nor compressed, if `renderer` knows the shards of that catalog.
///
/// # Errors
/// [`PollError::Compose`] if the composition does not fit its inputs, and the errors of rendering.
pub(crate) fn render_composition(
    composition: &Composition,
    catalogs: &mut [InputCatalog],
    mut renderer: Renderer,
    budget: &Budget,
) -> Result<(Rendering, Explanation), PollError> {
    let mut whole: Vec<Vec<String>> = vec![Vec::new(); catalogs.len()];
    let mut sink = |package: ComposedPackage<'_>| match package.content {
        ComposedContent::Shard { input } => {
            whole[input].push(package.name);
            Ok(())
        }
        ComposedContent::Lines(lines) => render_lines(&package.name, lines, &mut renderer),
    };
    let mut explanation = Explanation::default();
    compose::compose(composition, catalogs, &mut explanation, &mut sink, budget)?;
    for ((name, catalog), packages) in composition.names().zip(catalogs).zip(&whole) {
        if !packages.is_empty() {
            let rendered = catalog.render_whole(packages, &mut renderer);
            rendered.map_err(|source| ComposeError::Read {
                input: name.to_owned(),
                package: packages.join(", "),
                source,
            })?;
        }
    }
    Ok((renderer.finish()?, explanation))
}

/// Renders the canonical lines of one package as a file of its own.
fn render_lines(package: &str, lines: &mut dyn Read, renderer: &mut Renderer) -> Result<(), ReadError> {
    let path = match package {
        "" => "catalog.json".to_owned(),
        package => format!("{package}/catalog.json"),
    };
    Ok(renderer.file(&path, lines)?)
}
