//! Verification of what is stored: each object against its key, and its content against the
//! documents that name it.

mod content;
mod index;

use std::{collections::BTreeMap, mem};

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use model::text::chain;
use model::{
    CatalogName, Current, DecodedContent, Key, Kind, ManifestEntry, ObjectRef, Sha256, Snapshot,
};
use publish::is_listed;
use serde::{Serialize, Serializer};
use store::{ReadError, Store, StoreError, StoreExt, read_stored};

pub use self::content::{IntegrityCheck, ObjectProblem};
use self::index::IndexedLines;

/// Number of objects that are read at a time: each may have megabytes.
const READS_IN_FLIGHT: usize = 4;

/// Result of verifying one catalog: counts and problems.
#[derive(Debug, Serialize)]
pub struct Verification {
    /// Name of the catalog.
    pub catalog: CatalogName,
    /// Number of publications that were checked: the current one, and earlier ones and inputs that
    /// are still stored.
    pub snapshots: usize,
    /// Number of earlier publications and inputs that are not stored any more.
    pub expired: usize,
    /// Number of objects that were read.
    pub objects: usize,
    /// Number of bytes that were read.
    pub bytes: u64,
    /// All problems, in the order of their keys.
    pub findings: Vec<Finding>,
}

/// One object or document with its problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Key of the object or document.
    #[serde(serialize_with = "as_text")]
    pub key: Key,
    /// The problem; JSON has it in words.
    #[serde(serialize_with = "as_text")]
    pub problem: ObjectProblem,
    /// Object that should be stored under the key. `None` for a mutable document, and for an object
    /// that contradicts another one.
    #[serde(skip)]
    pub entry: Option<ManifestEntry>,
}

/// Reads everything that a catalog names, and compares it with what the documents record.
///
/// # Errors
/// [`StoreError`] only if the store cannot be asked.
pub async fn verify(store: &dyn Store, catalog: &CatalogName) -> Result<Verification, StoreError> {
    let mut verification = Verification {
        catalog: catalog.clone(),
        snapshots: 0,
        expired: 0,
        objects: 0,
        bytes: 0,
        findings: Vec::new(),
    };
    let key = Key::Current(catalog.clone());
    let current = match store.read_document::<Current>(&key).await {
        Ok(Some((current, _))) => current,
        unusable => {
            verification.found(
                key,
                unusable.map_or_else(problem, |_| Ok(ObjectProblem::Missing))?,
            );
            return Ok(verification);
        }
    };
    match is_listed(store, catalog).await {
        Ok(true) => {}
        Ok(false) => verification.found(Key::Catalogs, ObjectProblem::Unlisted),
        Err(error) => verification.found(Key::Catalogs, problem(error)?),
    }
    let mut indexed = IndexedLines::default();
    for (object, content_hash) in named_snapshots(&current) {
        if let Some(snapshot) = verification
            .snapshot(store, &current, object, content_hash)
            .await?
        {
            indexed.add(store, &object.key(), &snapshot).await?;
        }
    }
    verification.objects(store, &mut indexed).await?;
    for (key, problem) in indexed.wrong {
        verification.found(key, problem);
    }
    verification.findings.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(verification)
}

/// Returns the Snapshots of all publications and of the states that a composition or a ring needs, each
/// once because content may come back, with the content hashes that the pointer records for them.
fn named_snapshots(current: &Current) -> BTreeMap<ObjectRef, Sha256> {
    let kept = current.source.kept_states();
    let kept = kept.map(|(content_hash, snapshot)| (snapshot, content_hash));
    let publications = current.publications().into_iter();
    let publications = publications.map(|one| (one.snapshot, one.content_hash));
    kept.chain(publications).collect()
}

impl Verification {
    fn found(&mut self, key: Key, problem: ObjectProblem) {
        let entry = None;
        self.findings.push(Finding {
            key,
            problem,
            entry,
        });
    }

    /// Adds an object that is missing or has other bytes than it should have.
    fn found_object(&mut self, entry: ManifestEntry, problem: ObjectProblem) {
        self.findings.push(Finding {
            key: entry.key(),
            problem,
            entry: Some(entry),
        });
    }

    /// Checks one Snapshot. Only the current one has to be there.
    async fn snapshot(
        &mut self,
        store: &dyn Store,
        current: &Current,
        object: ObjectRef,
        content_hash: Sha256,
    ) -> Result<Option<Snapshot>, StoreError> {
        let snapshot = match read_stored::<Snapshot>(store, &object.digest).await {
            Ok(snapshot) => snapshot,
            Err(error) if error.is_not_found() && object != current.snapshot => {
                self.expired += 1;
                return Ok(None);
            }
            Err(error) => {
                self.found_object(
                    ManifestEntry {
                        object,
                        content: None,
                    },
                    problem(error)?,
                );
                return Ok(None);
            }
        };
        self.snapshots += 1;
        if snapshot.content_hash != content_hash {
            self.found(object.key(), ObjectProblem::Disagrees("current.json"));
        }
        // Only the current Snapshot: the history of the pointer repeats no sizes of earlier ones.
        if object == current.snapshot && !current.describes(&snapshot) || !snapshot.is_consistent()
        {
            let numbers = ObjectProblem::Disagrees("the numbers in it and in current.json");
            self.found(object.key(), numbers);
        }
        Ok(Some(snapshot))
    }

    async fn objects(
        &mut self,
        store: &dyn Store,
        indexed: &mut IndexedLines,
    ) -> Result<(), StoreError> {
        let objects = mem::take(&mut indexed.objects).into_values();
        let checks = objects.map(async |entry| (entry, check_entry(store, &entry).await));
        let mut checks = stream::iter(checks).buffer_unordered(READS_IN_FLIGHT);
        let mut shards = Vec::new();
        while let Some((entry, result)) = checks.next().await {
            self.objects += 1;
            match result? {
                Ok(()) => {
                    self.bytes += entry.object.digest.size;
                    if let (Kind::Package, Some(DecodedContent::Text(lines))) =
                        (entry.object.kind, entry.content)
                    {
                        shards.push((entry.object, lines));
                    }
                }
                Err(problem) => self.found_object(entry, problem),
            }
        }
        // Not in the loop: a read there would leave the other reads unpolled, in the middle of a
        // TLS handshake or of a body, until the server gives them up. One that handshakes one by
        // one answers nothing meanwhile.
        for (shard, lines) in shards {
            indexed.check(store, &shard, lines).await?;
        }
        Ok(())
    }
}

/// Reads one object to its end, and compares it with what its Snapshot records.
///
/// # Errors
/// [`StoreError`] if the store fails. A missing or damaged object is a problem and no error.
pub async fn check_entry(
    store: &dyn Store,
    entry: &ManifestEntry,
) -> Result<Result<(), ObjectProblem>, StoreError> {
    match store.open(&entry.key(), None).await {
        Ok(object) => check_body(entry, object.body).await,
        Err(error) if error.is_not_found() => Ok(Err(ObjectProblem::Missing)),
        Err(error) => Err(error),
    }
}

/// Reads the bytes of an object to their end, and compares them with what its Snapshot records.
///
/// # Errors
/// The first error of the bytes. Other bytes are a problem and no error.
pub async fn check_body<B: AsRef<[u8]>, E>(
    entry: &ManifestEntry,
    mut body: impl Stream<Item = Result<B, E>> + Unpin,
) -> Result<Result<(), ObjectProblem>, E> {
    let mut check = IntegrityCheck::new(entry);
    while let Some(chunk) = body.try_next().await? {
        if let Err(problem) = check.update(chunk.as_ref()) {
            return Ok(Err(problem));
        }
    }
    Ok(check.finish())
}

/// Describes an object that cannot be read. Only a store that fails is an error.
fn problem(error: ReadError) -> Result<ObjectProblem, StoreError> {
    match error {
        error if error.is_not_found() => Ok(ObjectProblem::Missing),
        ReadError::Store(error) => Err(error),
        // The finding names the object already.
        ReadError::Document { source, .. } => Ok(ObjectProblem::Document(chain(&source))),
        error => Ok(ObjectProblem::Document(chain(&error))),
    }
}

fn as_text<S: Serializer>(
    value: &impl std::fmt::Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
