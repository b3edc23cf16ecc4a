//! Images that the bundles of catalogs need.

use std::sync::Arc;

use carry::FoundImages;
use model::CatalogName;
use olm::{BundleSelection, RequiredImages};
use store::Store;

use crate::{InspectError, published};

/// Returns the images that all bundles of the catalogs need.
///
/// # Errors
/// A state that cannot be read, and a choice that a catalog does not fit.
pub async fn required(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
) -> Result<RequiredImages, InspectError> {
    Ok(find(store, names, &BundleSelection::default()).await?.needs)
}

/// Returns the images that a choice of packages and channels of the catalogs needs.
///
/// # Errors
/// A state that cannot be read, and a choice that a catalog does not fit.
pub async fn find(
    store: &Arc<dyn Store>,
    names: &[CatalogName],
    choice: &BundleSelection,
) -> Result<FoundImages, InspectError> {
    let mut found = FoundImages::default();
    for name in names {
        let state = published::state(store, name).await?;
        let snapshot = published::snapshot(&state).await?;
        found.add_names(snapshot.packages.iter().map(|shard| &shard.name));
        let mut parts = Vec::new();
        let mut needs = RequiredImages::default();
        for shard in snapshot
            .packages
            .iter()
            .filter(|shard| choice.takes(&shard.name))
        {
            let package = crate::package(&state, shard).await?;
            needs.add(name.as_str(), &shard.name, &package, choice)?;
            parts.extend(found.add_package(&shard.name, &package, choice)?);
        }
        found.add_catalog(&state.current().source, choice, &parts, needs);
    }
    Ok(found)
}
