use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use layout::{CatalogName, Current, Document, Index, Key, Named, Sha256, Snapshot};
use serde::{Serialize, Serializer};
use store::{DOCUMENT_MAX, ReadError, Store, StoreError, StoreExt};
use telemetry::chain;

use crate::{examine, read_index};

/// How many objects are read at a time.
const SIDE_BY_SIDE: usize = 4;

/// What a verification found.
#[derive(Debug, Default, Serialize)]
pub struct Verification {
    /// Publications that were checked: the current one and those that it remembers and that are still there.
    pub snapshots: usize,
    /// Earlier publications that are not kept any more.
    pub expired: usize,
    /// Objects that were read.
    pub objects: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Everything that is wrong.
    pub findings: Vec<Finding>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The object.
    pub key: String,
    /// What is wrong with it; in words, for programs too.
    #[serde(serialize_with = "in_words")]
    pub problem: Problem,
}

/// What can be wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A document names it and it is not there.
    #[error("is missing")]
    Missing,
    /// It does not decompress, or to something else than its name says.
    #[error("does not hold what its name says")]
    Content,
    /// Its bytes are not those that the Snapshot recorded.
    #[error("is stored as {found} with {found_size} bytes, the snapshot says {recorded} with {recorded_size}")]
    Stored {
        /// The sha256 that was found.
        found: Sha256,
        /// The size that was found.
        found_size: u64,
        /// The sha256 that the Snapshot records.
        recorded: Sha256,
        /// The size that the Snapshot records.
        recorded_size: u64,
    },
    /// It has another size than the Snapshot recorded.
    #[error("has {found} bytes, the snapshot says {recorded}")]
    Size {
        /// The size that was found.
        found: u64,
        /// The size that the Snapshot records.
        recorded: u64,
    },
    /// A document that cannot be read.
    #[error("cannot be used: {0}")]
    Document(String),
    /// A document that does not agree with another one.
    #[error("does not agree with {0}")]
    Disagrees(&'static str),
}

/// Reads everything that a catalog names and compares it with what it should be.
///
/// # Errors
/// [`StoreError`] only if the store cannot be asked.
pub async fn verify(store: &dyn Store, catalog: &CatalogName) -> Result<Verification, StoreError> {
    let mut verification = Verification::default();
    let key = Key::Current(catalog.clone());
    let current = match document::<Current>(store, &key).await? {
        Ok((current, _)) => current,
        Err(finding) => {
            verification.findings.push(finding);
            return Ok(verification);
        }
    };
    let mut expected = BTreeMap::new();
    for hash in publications(&current) {
        verification
            .snapshot(store, catalog, hash, &current, &mut expected)
            .await?;
    }
    verification.objects(store, expected).await?;
    verification.findings.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(verification)
}

/// Content may come back: each hash once.
fn publications(current: &Current) -> Vec<Sha256> {
    let mut seen = BTreeSet::new();
    let earlier = current.previous.iter().map(|previous| previous.content_hash);
    let all = std::iter::once(current.content_hash).chain(earlier);
    all.filter(|hash| seen.insert(*hash)).collect()
}

impl Verification {
    fn found(&mut self, key: &Key, problem: Problem) {
        self.findings.push(Finding {
            key: key.to_string(),
            problem,
        });
    }

    /// Checks one Snapshot and notes what it names. Only the current one has to be there.
    async fn snapshot(
        &mut self,
        store: &dyn Store,
        catalog: &CatalogName,
        hash: Sha256,
        current: &Current,
        expected: &mut BTreeMap<Key, Named>,
    ) -> Result<(), StoreError> {
        let key = Key::Snapshot(catalog.clone(), hash);
        match document::<Snapshot>(store, &key).await? {
            Err(Finding {
                problem: Problem::Missing,
                ..
            }) if hash != current.content_hash => self.expired += 1,
            Err(finding) => self.findings.push(finding),
            Ok((snapshot, sha256)) => {
                self.snapshots += 1;
                if snapshot.content_hash != hash {
                    self.found(&key, Problem::Content);
                }
                // What it names is not known then.
                if current.contradicts(hash, sha256) {
                    self.found(&key, Problem::Disagrees("current.json"));
                    return Ok(());
                }
                let named = snapshot.objects(catalog).into_iter();
                expected.extend(named.map(|named| (named.key.clone(), named)));
            }
        }
        Ok(())
    }

    async fn objects(&mut self, store: &dyn Store, expected: BTreeMap<Key, Named>) -> Result<(), StoreError> {
        let checks: Vec<_> = expected.into_values().map(|expected| check(store, expected)).collect();
        let mut checks = stream::iter(checks).buffer_unordered(SIDE_BY_SIDE);
        while let Some((bytes, finding)) = checks.try_next().await? {
            self.objects += 1;
            self.bytes += bytes;
            self.findings.extend(finding);
        }
        Ok(())
    }
}

async fn check(store: &dyn Store, expected: Named) -> Result<(u64, Option<Finding>), StoreError> {
    let key = expected.key;
    let content = expected.content.map(|content| content.sha256);
    let examined = match examine(store, &key).await {
        Ok(examined) => examined,
        Err(error) if error.is_not_found() => {
            return Ok((
                0,
                Some(Finding {
                    key: key.to_string(),
                    problem: Problem::Missing,
                }),
            ));
        }
        Err(error) => return Err(error),
    };
    let problem = if examined.content.is_none() || content.is_some() && examined.content != content {
        Some(Problem::Content)
    } else if examined.stored != expected.stored {
        Some(Problem::Stored {
            found: examined.stored.sha256,
            found_size: examined.stored.size,
            recorded: expected.stored.sha256,
            recorded_size: expected.stored.size,
        })
    } else {
        index_problem(store, &key).await?
    };
    Ok((
        examined.stored.size,
        problem.map(|problem| Finding {
            key: key.to_string(),
            problem,
        }),
    ))
}

/// The name of an index says nothing of its content, so it must at least read as one.
async fn index_problem(store: &dyn Store, key: &Key) -> Result<Option<Problem>, StoreError> {
    if !matches!(key, Key::Index(..)) {
        return Ok(None);
    }
    let (bytes, _) = match store.read_all(key, Index::MAX_BYTES).await {
        Ok(found) => found,
        Err(ReadError::Store(error)) => return Err(error),
        Err(error) => return Ok(Some(Problem::Document(chain(&error)))),
    };
    Ok(read_index(&bytes).err().map(|error| Problem::Document(chain(&error))))
}

/// A document and the sha256 of its bytes as they are stored, which another program may have written in another way.
/// One that cannot be used is a finding; only a store that fails is an error.
async fn document<T: Document>(store: &dyn Store, key: &Key) -> Result<Result<(T, Sha256), Finding>, StoreError> {
    let finding = |problem| {
        Ok(Err(Finding {
            key: key.to_string(),
            problem,
        }))
    };
    match store.read_all(key, DOCUMENT_MAX).await {
        Ok((bytes, _)) => match T::from_bytes(&bytes) {
            Ok(document) => Ok(Ok((document, Sha256::of(&bytes)))),
            Err(error) => finding(Problem::Document(chain(&error))),
        },
        Err(error) if error.is_not_found() => finding(Problem::Missing),
        Err(ReadError::Store(error)) => Err(error),
        Err(error) => finding(Problem::Document(chain(&error))),
    }
}

fn in_words<S: Serializer>(problem: &Problem, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(problem)
}
