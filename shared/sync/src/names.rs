use layout::{CatalogName, Catalogs, Document as _, Key};

use crate::{Document, Origin, SyncError};

/// The names of all catalogs of an origin.
///
/// # Errors
/// [`SyncError::Origin`], [`SyncError::Document`].
pub async fn names(origin: &dyn Origin) -> Result<Vec<CatalogName>, SyncError> {
    let Document::Bytes(bytes) = origin.document(&Key::Catalogs, None).await? else {
        unreachable!("nothing is known");
    };
    let catalogs = Catalogs::from_bytes(&bytes).map_err(|source| SyncError::Document {
        key: Key::Catalogs.to_string(),
        source,
    })?;
    Ok(catalogs.catalogs.into_iter().collect())
}
