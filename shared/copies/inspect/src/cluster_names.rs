//! Names of CatalogSources and ClusterCatalogs by which clusters use a catalog.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::str::FromStr;

use carry::CatalogRepository;
use model::text::{did_you_mean, value_without_secrets};
use model::{CatalogName, ImageReference};
use sync::ReadCatalog;

use crate::InspectError;

/// Ends of the names of Red Hat's images, and of the CatalogSources that OpenShift has for them.
const DEFAULT_SOURCES: &[[&str; 2]] = &[
    ["redhat-operator-index", "redhat-operators"],
    ["certified-operator-index", "certified-operators"],
    ["community-operator-index", "community-operators"],
    ["redhat-marketplace-index", "redhat-marketplace"],
];

/// Returns the names that `manifests`, `carry` and oc-mirror v2 make for a catalog, and the one that
/// OpenShift has by default.
pub(crate) fn cluster_names(catalog: &ReadCatalog) -> BTreeSet<String> {
    let mut repositories = Vec::new();
    if let ReadCatalog::Published { state, .. } = catalog {
        let source = &state.current().source;
        repositories.push(CatalogRepository::new(state.name(), source));
    }
    repositories.extend(repository_of_image(catalog.source()));
    let mut names = BTreeSet::new();
    for repository in repositories {
        let suffix = repository.suffix();
        names.insert(format!("cs-{suffix}"));
        names.insert(format!("cc-{suffix}"));
        for [image, name] in DEFAULT_SOURCES {
            let last = repository.repository.rsplit('/').next();
            if last == Some(*image) {
                names.insert((*name).to_owned());
            }
        }
    }
    names
}

/// Returns the repository and the tag of an image; `None` for another source.
fn repository_of_image(source: &str) -> Option<CatalogRepository> {
    let text = source.strip_prefix("docker://").unwrap_or(source);
    let first = text.split('/').next().unwrap_or_default();
    let is_other = ["dir:", "oci:", "git:", "compose:", "ring:"]
        .iter()
        .any(|scheme| first.starts_with(scheme));
    if is_other || source.contains("://") && text == source || !text.contains('/') {
        return None;
    }
    let image = ImageReference::as_written(text);
    let repository = image.repository.rsplit('/').next()?;
    Some(CatalogRepository {
        repository: repository.to_owned(),
        tag: image.tag.unwrap_or_else(|| carry::LATEST.to_owned()),
        catalog_source: None,
    })
}

/// CatalogSource or ClusterCatalog, and the catalog to which it belongs: `NAME=CATALOG`.
#[derive(Debug, Clone)]
pub struct SourceName {
    /// Name in the cluster.
    pub source: String,
    /// Catalog as the question names it.
    pub catalog: String,
}

impl FromStr for SourceName {
    type Err = InspectError;

    fn from_str(text: &str) -> Result<Self, InspectError> {
        match text.split_once('=') {
            Some((source, catalog)) if is_name(source) && !catalog.is_empty() => Ok(Self {
                source: source.to_owned(),
                catalog: catalog.to_owned(),
            }),
            // The text is not repeated: a URL in the wrong place may have a password.
            _ => Err(InspectError::refused(
                "write the name of a CatalogSource and its catalog, such as redhat-operators=redhat-4-20",
            )),
        }
    }
}

/// Returns true for a name that an object of Kubernetes can have, as the name of a catalog is.
fn is_name(text: &str) -> bool {
    text.parse::<CatalogName>().is_ok()
}

impl SourceName {
    /// Returns true if this is the catalog, by its name, its source, or its URL in another mirror.
    pub(crate) fn names(&self, catalog: &ReadCatalog) -> bool {
        let name = catalog.name();
        let in_mirror = self.catalog.trim_end_matches('/').rsplit_once("/catalogs/");
        name == self.catalog
            || catalog.source() == self.catalog
            || in_mirror.is_some_and(|(_, last)| name == last)
    }

    /// Refuses a catalog that is none of those given.
    pub(crate) fn check(&self, catalogs: &[&ReadCatalog]) -> Result<(), InspectError> {
        if catalogs.iter().any(|catalog| self.names(catalog)) {
            return Ok(());
        }
        let names: Vec<Cow<'_, str>> = catalogs.iter().map(|catalog| catalog.name()).collect();
        let similar = did_you_mean(&self.catalog, names.iter().map(AsRef::as_ref));
        let catalog = value_without_secrets(&self.catalog);
        let source = &self.source;
        Err(InspectError::refused(format!(
            "the catalog {catalog} of {source} is none of those that the cluster uses{similar}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_of_image_is_last_part_with_tag() {
        for (source, expected) in [
            (
                "registry.redhat.io/redhat/redhat-operator-index:v4.20",
                "redhat-operator-index-v4-20",
            ),
            ("docker://localhost:5000/a/b:v1", "b-v1"),
            ("quay.io/a/b@sha256:00", "b-latest"),
            ("dir:a/b", "-"),
            ("oci:a/b:v1", "-"),
            ("https://h/a/b.tar.gz", "-"),
            ("git:https://h/a/b#main", "-"),
            ("compose:quay.io/a/b:v1#0", "-"),
            ("catalog", "-"),
        ] {
            let found = repository_of_image(source);
            let found = found.map_or("-".to_owned(), |repository| repository.suffix());
            assert_eq!(found, expected, "{source}");
        }
    }
}
