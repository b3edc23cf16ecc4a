//! Catalogs that a command reads package by package, without publishing them.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use inspect::published;
use model::CatalogName;
use model::text::{did_you_mean, value_without_secrets};
use source::Source;
use sync::{ReadCatalog, SyncError};

use crate::args::{Access, CatalogAccess, is_source};
use crate::{compositions, wiring};

/// Help of an argument that names such a catalog.
pub(crate) const CATALOG_HELP: &str = "\
CATALOG is a catalog of the store, https://MIRROR/catalogs/NAME for a catalog of another mirror, or a source as for `render`, such \
as dir:configs or quay.io/a/b:v1. Of a store and of a mirror only the packages that are needed are read.";

/// Opens a catalog of a store, of a mirror, or a source.
pub(crate) async fn open(text: &str, access: &CatalogAccess) -> anyhow::Result<ReadCatalog> {
    if let Some((mirror, name)) = mirror_catalog(text) {
        let mirror = wiring::other_mirror(&access.registries, mirror)?;
        return Ok(ReadCatalog::open(Arc::new(mirror), &name).await?);
    }
    if is_source(text) {
        let source = Source::of_argument(text)?;
        return Ok(ReadCatalog::Rendered {
            rendering: wiring::sources(&access.registries)?.render(&source).await?,
            source: text.to_owned(),
        });
    }
    let store = access.store.open_alone(Access::Read).await?;
    match ReadCatalog::open(store.clone(), &text.parse()?).await {
        Err(SyncError::UnknownCatalog(name)) => {
            anyhow::bail!("{}", published::unknown(&*store, &name).await?)
        }
        opened => Ok(opened?),
    }
}

/// Reads the lines of a package that a catalog must have.
pub(crate) async fn package(
    catalog: &str,
    access: &CatalogAccess,
    name: &str,
) -> anyhow::Result<Vec<u8>> {
    lines(&open(catalog, access).await?, name).await
}

/// Reads the lines of a package that the catalog must have.
pub(crate) async fn lines(catalog: &ReadCatalog, package: &str) -> anyhow::Result<Vec<u8>> {
    let lines = catalog.lines(package).await?;
    lines.with_context(|| {
        let similar = did_you_mean(package, catalog.packages());
        format!("the catalog has no package {package:?}{similar}")
    })
}

/// Opens catalogs, and of a file each one that it composes.
pub(crate) async fn open_all(
    texts: &[String],
    access: &CatalogAccess,
) -> anyhow::Result<Vec<ReadCatalog>> {
    let mut all = Vec::new();
    for text in texts {
        let opened = if Path::new(text).is_file() {
            compositions::catalogs(Path::new(text), access).await
        } else {
            open(text, access).await.map(|catalog| vec![catalog])
        };
        all.extend(opened.with_context(|| value_without_secrets(text))?);
    }
    Ok(all)
}

/// Returns the mirror and the name of a catalog in a URL such as
/// `https://mirror.example/catalogs/operatorhubio`. An archive may lie in a folder of that name
/// too.
fn mirror_catalog(text: &str) -> Option<(&str, CatalogName)> {
    let (mirror, name) = text.trim_end_matches('/').rsplit_once("/catalogs/")?;
    let is_url = mirror.starts_with("https://") || mirror.starts_with("http://");
    if !is_url || text.parse::<Source>().is_ok() {
        return None;
    }
    Some((mirror, name.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirror_catalog_is_url_of_catalog_and_no_archive() {
        let found = |text| mirror_catalog(text).map(|(mirror, name)| format!("{mirror} {name}"));
        let names = [
            "https://m.example/x/catalogs/a/",
            "http://localhost:80/catalogs/a",
        ]
        .map(found);
        assert_eq!(
            names.map(Option::unwrap),
            ["https://m.example/x a", "http://localhost:80 a"]
        );
        for other in "https://m.example/catalogs/a.tar.gz m.example/catalogs/a:v1 https://m.example/a dir:x/catalogs/a"
            .split(' ')
        {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
