use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use model::text::chain;
use model::{CatalogName, Current, Document, Key, Kind, ObjectKey, Sha256, Snapshot};
use serde::{Deserialize, Serialize};
use store::{ReadError, Store, StoreExt, find_stored};

use super::{ArchiveError, PackedCatalog};

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

/// Maximum size of a receipt in bytes: of some three million objects.
const BYTES_MAX: u64 = 256 << 20;

impl Receipt {
    /// Reads the receipt that another site has sent, from a file or from what a shell has opened.
    ///
    /// # Errors
    /// A file that cannot be read or is too large, and one that is no receipt.
    pub fn read(path: &Path) -> Result<Self, ArchiveError> {
        let read = if work::is_of_shell(path) {
            fs::read(path)
        } else {
            work::read_file(path, BYTES_MAX)
        };
        let volume = path.display().to_string();
        match read {
            Ok(bytes) => Self::from_bytes(&bytes)
                .map_err(|error| ArchiveError::Refused(format!("{volume}: {}", chain(&error)))),
            Err(source) => Err(ArchiveError::Read { volume, source }),
        }
    }

    /// Lists the states of `names` with these content hashes, and their objects, from the Snapshots
    /// that the exporting store still has. The caller knows that the receiving store has the states
    /// too.
    ///
    /// # Errors
    /// [`ArchiveError::Refused`] for a content hash without a stored state, and
    /// [`ArchiveError::Store`].
    pub async fn of_contents(
        store: &dyn Store,
        names: &[CatalogName],
        hashes: &[Sha256],
    ) -> Result<Self, ArchiveError> {
        let mut pointers = Vec::new();
        for name in names {
            let current = store
                .read_document::<Current>(&Key::Current(name.clone()))
                .await?;
            pointers.extend(current.map(|(current, _)| (name, current)));
        }
        let mut receipt = Self::default();
        for hash in hashes {
            let known = receipt.catalogs.len();
            for (name, current) in &pointers {
                for publication in current.publications() {
                    if publication.content_hash == *hash
                        && let Some(snapshot) =
                            find_stored::<Snapshot>(store, &publication.snapshot.digest).await?
                    {
                        receipt.objects.extend(reusable(&snapshot));
                        receipt
                            .catalogs
                            .push(PackedCatalog::new(name, &publication));
                    }
                }
            }
            if receipt.catalogs.len() == known {
                return Err(ArchiveError::Refused(format!(
                    "the store has no state with the content hash {hash}; export since a receipt, or everything"
                )));
            }
        }
        Ok(receipt)
    }
}

/// Lists the published states of `names` and their objects. A catalog that is not published is left
/// out.
///
/// # Errors
/// [`ReadError`] if the store fails or a document cannot be read.
pub async fn receipt(store: &dyn Store, names: &[CatalogName]) -> Result<Receipt, ReadError> {
    let mut receipt = Receipt::default();
    for name in names {
        let current = store
            .read_document::<Current>(&Key::Current(name.clone()))
            .await?;
        let Some((current, _)) = current else {
            continue;
        };
        let Some(snapshot) = find_stored::<Snapshot>(store, &current.snapshot.digest).await? else {
            continue;
        };
        receipt.objects.extend(reusable(&snapshot));
        receipt.catalogs.push(PackedCatalog::new(name, &current));
    }
    Ok(receipt)
}

/// Returns the objects of a Snapshot that a later state may name too. `all.*` and the index belong
/// to one content, so a later state does not name them again.
fn reusable(snapshot: &Snapshot) -> impl Iterator<Item = ObjectKey> {
    let entries = snapshot.objects().into_iter();
    let reusable = entries.filter(|entry| matches!(entry.object.kind, Kind::Package | Kind::Blob));
    reusable.map(|entry| entry.object.into())
}
