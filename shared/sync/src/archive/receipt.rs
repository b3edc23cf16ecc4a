use std::collections::BTreeSet;

use model::{CatalogName, Current, Document, Key, Kind, ObjectKey, Sha256, Snapshot};
use serde::{Deserialize, Serialize};
use store::{ReadError, Store, StoreExt, find_stored};

use super::PackedCatalog;

/// Content of a store, for the side that exports to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Published state of each catalog, in the order asked for.
    pub catalogs: Vec<PackedCatalog>,
    /// Shards and image parts that the published states name. Their keys are hashes of their bytes.
    pub objects: BTreeSet<ObjectKey>,
}

impl Document for Receipt {
    const NAME: &'static str = "receipt";
}

/// Objects that an archive leaves out, because the receiving store has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// Leaves out the objects of states with these content hashes. The exporting store must still have their Snapshots. Without
    /// hashes, the default, the archive is complete.
    Contents(Vec<Sha256>),
    /// Leaves out the objects on a receipt of the receiving store.
    Receipt(Receipt),
}

impl Default for Since {
    fn default() -> Self {
        Self::Contents(Vec::new())
    }
}

/// Lists the published states of `names` and their objects. A catalog that is not published is left out.
///
/// # Errors
/// [`ReadError`] if the store fails or a document cannot be read.
pub async fn receipt(store: &dyn Store, names: &[CatalogName]) -> Result<Receipt, ReadError> {
    let mut receipt = Receipt::default();
    for name in names {
        let current = store.read_document::<Current>(&Key::Current(name.clone())).await?;
        let Some((current, _)) = current else { continue };
        let Some(snapshot) = find_stored::<Snapshot>(store, &current.snapshot.digest).await? else {
            continue;
        };
        receipt.objects.extend(reusable(&snapshot));
        receipt.catalogs.push(PackedCatalog::new(name, &current));
    }
    Ok(receipt)
}

/// Returns the objects of a Snapshot that a later state may name too. `all.*` and the index belong to one content, so a
/// later state does not name them again.
pub(super) fn reusable(snapshot: &Snapshot) -> impl Iterator<Item = ObjectKey> {
    let entries = snapshot.objects().into_iter();
    let reusable = entries.filter(|entry| matches!(entry.object.kind, Kind::Package | Kind::Blob));
    reusable.map(|entry| entry.object.into())
}
