use futures_util::{StreamExt, TryStreamExt, stream};
use layout::{CatalogName, Named, Snapshot};
use store::{Store, StoreError};

use crate::{Finding, Problem};

/// How many objects are looked at side by side: each is one small request, as small as a put's.
const LOOKS: usize = 32;

/// Looks at every object that a Snapshot names without reading it, and tells which are not there or have another size.
///
/// # Errors
/// As [`Store::head`]; an object that is not there is a finding.
pub async fn missing(
    store: &dyn Store,
    catalog: &CatalogName,
    snapshot: &Snapshot,
) -> Result<Vec<Finding>, StoreError> {
    let named = snapshot.objects(catalog).into_iter();
    let looks: Vec<_> = named.map(|named| look(store, named)).collect();
    let mut found: Vec<Finding> = stream::iter(looks)
        .buffer_unordered(LOOKS)
        .try_filter_map(async |finding| Ok(finding))
        .try_collect()
        .await?;
    found.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(found)
}

async fn look(store: &dyn Store, Named { key, stored, .. }: Named) -> Result<Option<Finding>, StoreError> {
    let problem = match store.head(&key).await {
        Ok(info) if info.size == stored.size => return Ok(None),
        Ok(info) => Problem::Size {
            found: info.size,
            recorded: stored.size,
        },
        Err(error) if error.is_not_found() => Problem::Missing,
        Err(error) => return Err(error),
    };
    Ok(Some(Finding {
        key: key.to_string(),
        problem,
    }))
}
