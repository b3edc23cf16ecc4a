use std::collections::BTreeSet;

use model::{CatalogName, Current, Document, Key, Kind, ObjectKey, ObjectRef, Sha256, Snapshot, StoredDocument};
use serde::{Deserialize, Serialize};
use store::{DOCUMENT_MAX, ReadError, Store, StoreExt};

/// Content of a store, for the side that exports to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Published state of each catalog, in the order asked for.
    pub catalogs: Vec<ReceiptCatalog>,
    /// Shards and image parts that the published states name. Their keys are hashes of their bytes.
    pub objects: BTreeSet<ObjectKey>,
}

/// A catalog of a receipt, in its published state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptCatalog {
    /// Name of the catalog in both stores.
    pub name: CatalogName,
    /// Serial under which the state was published.
    pub serial: u64,
    /// Content hash of the state: the sha256 of its `all.json`.
    pub content_hash: Sha256,
}

impl Document for Receipt {
    const NAME: &'static str = "receipt";
}

/// Objects that an archive leaves out, because the receiving store has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Since {
    /// Leaves nothing out: the archive is complete.
    #[default]
    Nothing,
    /// Leaves out the objects of states with these content hashes. The exporting store must still have their Snapshots.
    Contents(Vec<Sha256>),
    /// Leaves out the objects on a receipt of the receiving store.
    Receipt(Receipt),
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
        let Some(snapshot) = read_snapshot(store, &current.snapshot).await? else {
            continue;
        };
        receipt.objects.extend(reusable(&snapshot));
        receipt.catalogs.push(ReceiptCatalog {
            name: name.clone(),
            serial: current.serial,
            content_hash: current.content_hash,
        });
    }
    Ok(receipt)
}

/// Reads a Snapshot of the store; `None` if it is missing.
///
/// # Errors
/// [`ReadError`] if the store fails or the Snapshot cannot be read.
pub(super) async fn read_snapshot(store: &dyn Store, reference: &ObjectRef) -> Result<Option<Snapshot>, ReadError> {
    let key = reference.key();
    let bytes = match store.read_all(&key, DOCUMENT_MAX).await {
        Ok((bytes, _)) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let snapshot = Snapshot::from_stored(&bytes).map_err(|source| ReadError::Document {
        key: key.to_string(),
        source,
    })?;
    Ok(Some(snapshot))
}

/// Returns the objects of a Snapshot that a later state may name too. `all.*` and the index belong to one content, so a
/// later state does not name them again.
pub(super) fn reusable(snapshot: &Snapshot) -> impl Iterator<Item = ObjectKey> {
    let entries = snapshot.objects().into_iter();
    let reusable = entries.filter(|entry| matches!(entry.object.kind, Kind::Package | Kind::Blob));
    reusable.map(|entry| ObjectKey {
        kind: entry.object.kind,
        sha256: entry.object.digest.sha256,
    })
}
