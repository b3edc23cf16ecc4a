//! Catalogs of files of compositions, and printing catalogs.

use std::fs;
use std::io::{self, BufWriter};
use std::path::Path;

use anyhow::Context;
use compose::{ComposeFile, Composition};
use inspect::{Composer, SourceReader};
use model::{Encoding, Kind};
use publish::ComposedSource;
use render::{RenderError, Rendering, Sink};
use sync::ReadCatalog;

use crate::args::{Access, CatalogAccess};
use crate::wiring;

/// Reads a file of compositions.
pub(crate) fn read(path: &Path) -> anyhow::Result<ComposeFile> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    ComposeFile::parse(&text).with_context(|| path.display().to_string())
}

/// Prepares a composition of a file. The store is opened if an input may lie in it.
pub(crate) async fn open(
    composition: Composition,
    file: &Path,
    access: &CatalogAccess,
    reader: &SourceReader,
) -> anyhow::Result<Composer> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let composed = ComposedSource::new(composition, folder);
    let composed = composed.with_context(|| file.display().to_string())?;
    let mut names = composed
        .composition
        .inputs
        .iter()
        .filter_map(|input| input.catalog.as_deref());
    let is_needed = access.store.store.is_some() || names.clone().any(|name| !name.contains('/'));
    let mut store = None;
    if names.next().is_some() {
        match access.store.open_alone(Access::Read).await {
            Ok(opened) => store = Some(opened),
            Err(error) if is_needed => return Err(error),
            // There is none at the default place.
            Err(_) => {}
        }
    }
    Ok(Composer::new(composed, store, reader).await?)
}

/// Composes all catalogs of a file, to be read and not published. Each has the name of its first
/// input.
pub(crate) async fn catalogs(
    file: &Path,
    access: &CatalogAccess,
) -> anyhow::Result<Vec<ReadCatalog>> {
    let place = || file.display().to_string();
    let compositions = match read(file)? {
        ComposeFile::Composition(composition) => vec![composition],
        ComposeFile::ImageSet(image_set) => image_set
            .entries
            .into_iter()
            .map(|entry| entry.composition)
            .collect(),
        ComposeFile::Filter(_) => {
            anyhow::bail!("{}: a FilterConfiguration names no catalog", place())
        }
    };
    let reader = wiring::sources(&access.registries)?;
    let mut catalogs = Vec::new();
    for composition in compositions {
        let first = composition
            .inputs
            .first()
            .map(|input| input.name().to_owned());
        let composer = open(composition, file, access, &reader).await?;
        catalogs.push(ReadCatalog::Rendered {
            rendering: composer.compose().await?.rendering,
            source: first.unwrap_or_else(place),
        });
    }
    Ok(catalogs)
}

/// Prints the canonical lines of a catalog.
pub(crate) async fn print_lines(rendering: Rendering) -> anyhow::Result<()> {
    work::run(rendering.budget().clone(), move || write_lines(&rendering)).await?
}

fn write_lines(rendering: &Rendering) -> anyhow::Result<()> {
    let output: Sink = Box::new(BufWriter::with_capacity(1 << 20, io::stdout()));
    match rendering.write_all([(Kind::All(Encoding::Identity), output)].into()) {
        Err(RenderError::Sink { source, .. }) => {
            terminal::until_closed(Err(source)).context("cannot print the catalog")
        }
        written => written.map(drop).context("cannot print the catalog"),
    }
}
