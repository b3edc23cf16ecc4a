use std::collections::BTreeMap;

use layout::{CatalogName, Current, Document, Key, Sha256, Snapshot};
use serde::{Deserialize, Serialize};
use store::{ReadError, Store, StoreExt};

/// What a store holds, for the side that exports to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// What is published.
    pub catalogs: Vec<ReceiptCatalog>,
    /// The objects that published states name and share, by key, with the sha256 of their stored bytes.
    pub objects: BTreeMap<String, Sha256>,
}

/// A catalog of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptCatalog {
    /// Its name.
    pub name: CatalogName,
    /// Its serial.
    pub serial: u64,
    /// Its content hash.
    pub content_hash: Sha256,
}

impl Document for Receipt {
    const KIND: &'static str = "receipt";
}

/// What an archive leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Since {
    /// Nothing.
    #[default]
    Nothing,
    /// What states with these content hashes name. The exporting store must still have them.
    Contents(Vec<Sha256>),
    /// What the other side says that it holds.
    Receipt(Receipt),
}

/// Lists what the published states of `names` name.
///
/// # Errors
/// [`ReadError`]; a catalog that is not published is left out.
pub async fn receipt(store: &dyn Store, names: &[CatalogName]) -> Result<Receipt, ReadError> {
    let mut receipt = Receipt::default();
    for name in names {
        let current = store.read_document::<Current>(&Key::Current(name.clone())).await?;
        let Some((current, _)) = current else { continue };
        let key = Key::Snapshot(name.clone(), current.content_hash);
        let Some((snapshot, _)) = store.read_document::<Snapshot>(&key).await? else {
            continue;
        };
        receipt.objects.extend(shared(&snapshot, name));
        receipt.catalogs.push(ReceiptCatalog {
            name: name.clone(),
            serial: current.serial,
            content_hash: current.content_hash,
        });
    }
    Ok(receipt)
}

/// The objects of a Snapshot that others may name too. The rest has the content hash in its key, so no later state
/// needs it.
pub(super) fn shared(snapshot: &Snapshot, name: &CatalogName) -> impl Iterator<Item = (String, Sha256)> {
    let objects = snapshot.objects(name).into_iter();
    let shared = objects.filter(|named| named.key.catalog().is_none());
    shared.map(|named| (named.key.to_string(), named.stored.sha256))
}
