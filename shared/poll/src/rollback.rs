use std::time::Instant;

use keep::{Finding, Watch, missing};
use layout::{BroughtBack, CatalogName, Current, Document, Key, Outcome, Sha256, Snapshot, SnapshotRef, Verified};
use seal::Signer;
use store::{Condition, DOCUMENT_MAX, ReadError, Store, StoreExt, Version};

use crate::{
    Changes, PollError, Report, Surroundings,
    pointer::{Seal, read_pointer},
    turn::{Read, pause},
};

/// How often a rollback starts again after a lost race, as a turn does by default.
const ATTEMPTS: u32 = 6;

/// Which earlier content a rollback publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The newest that is not the current one.
    Previous,
    /// The one whose content hash starts so. A whole hash may be of any content of the catalog that is still stored; a
    /// part of one is looked up in `current.json`.
    Hash(String),
}

/// On what terms it is published.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// Whether it does not matter how the content was verified.
    pub unverified: bool,
    /// The time and chance.
    pub surroundings: Surroundings,
}

/// Why an earlier content cannot be published again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RollbackError {
    /// There is no such catalog.
    #[error("the store has no catalog {0}")]
    NoCatalog(CatalogName),
    /// Nothing else was ever published, or nothing is remembered.
    #[error("there is no earlier publication")]
    NoPrevious,
    /// No content hash starts so.
    #[error("no remembered publication has a content hash that starts with {0:?}")]
    Unknown(String),
    /// Several do.
    #[error("{count} publications have content hashes that start with {prefix:?}")]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// How many.
        count: usize,
    },
    /// The content is not stored any more.
    #[error("the content {0} is not kept any more")]
    Gone(Sha256),
    /// A document names another content than it should, or is not the one that was published.
    #[error("the snapshot of {0} is not the one that was published")]
    Mistaken(Sha256),
    /// The pointer is not from whom it should be, and to sign its history would make it one's own.
    #[error("what is published is not signed by one of the keys; poll the catalog with them first")]
    Untrusted,
    /// The history does not say what its Snapshot is, or says that it is another one.
    #[error("nothing vouches for the snapshot of {0} as it is stored, so it is not signed")]
    Unvouched(Sha256),
    /// What is published is verified, and this was not, or by what is not asked for any more.
    #[error(
        "{content_hash} {how}, unlike what is published now: to publish it all the same ask for it as `unverified`"
    )]
    Unverified {
        /// Which content.
        content_hash: Sha256,
        /// What is known of it.
        how: &'static str,
    },
    /// Some of it is missing or damaged.
    #[error("{count} objects of {content_hash} cannot be served, such as {first}")]
    Incomplete {
        /// Of which content.
        content_hash: Sha256,
        /// How many.
        count: usize,
        /// The first of them and what is wrong with it.
        first: String,
    },
}

/// Publishes an earlier content of a catalog again, under a new serial, after a look at every object that it names.
///
/// The source stays what the tag was last seen at, so the next poll finds it known and leaves the rollback in place until
/// the source moves or a poll is forced. `status.json` stays too: nothing was polled.
///
/// `signer` signs the new pointer, and has to be given where the old one is signed.
///
/// Where a policy is asked of the source, it has to have been asked of the earlier content too.
pub async fn rollback(store: &dyn Store, catalog: &CatalogName, target: &Target, signer: Option<&Signer>) -> Report {
    rollback_on(store, catalog, target, signer, &Terms::default()).await
}

/// The same, on other terms.
pub async fn rollback_on(
    store: &dyn Store,
    catalog: &CatalogName,
    target: &Target,
    signer: Option<&Signer>,
    terms: &Terms,
) -> Report {
    let started = Instant::now();
    let mut report = Report::new(catalog.clone());
    let rollback = Rollback {
        store,
        catalog,
        target,
        signer,
        terms,
    };
    let ended = rollback.run(&mut report).await;
    report.end(ended, started.elapsed());
    log(&report);
    report
}

struct Rollback<'a> {
    store: &'a dyn Store,
    catalog: &'a CatalogName,
    target: &'a Target,
    signer: Option<&'a Signer>,
    terms: &'a Terms,
}

impl Rollback<'_> {
    async fn run(&self, report: &mut Report) -> Result<Outcome, PollError> {
        for attempt in 0..ATTEMPTS {
            match self.attempt(report).await {
                Err(error) if error.is_race() => pause(&self.terms.surroundings, self.catalog, attempt, &error).await,
                done => return done,
            }
        }
        Err(PollError::Contended { attempts: ATTEMPTS })
    }

    async fn attempt(&self, report: &mut Report) -> Result<Outcome, PollError> {
        let mut watch = Watch::start(self.store).await?;
        let Read { current, version, .. } = self.current().await?;
        report.digest = Some(current.source.digest.clone());
        report.describe(Some(&current));
        let content_hash = self.target.find(&current)?;
        if content_hash == current.content_hash {
            return Ok(Outcome::Unchanged);
        }
        let (snapshot, reference) = self.snapshot(content_hash).await?;
        self.vouch(&current, &reference, content_hash)?;
        let verified = self.verified(&current, content_hash)?;
        self.check(&snapshot).await?;
        report.changes = self.changes(&current, &snapshot).await;
        let next = Current {
            serial: current.serial + 1,
            content_hash,
            snapshot: reference,
            brought_back: Some(BroughtBack { verified }),
            published_at: self.terms.surroundings.now(),
            previous: current.as_previous(),
            ..current.clone()
        };
        let next = self.seal().sealed(Some(&current), next)?;
        let named = (content_hash, &*next.previous);
        watch.spare_forgotten(&current, named, next.published_at);
        let announced = watch.settle(self.store, self.catalog, &snapshot).await?;
        self.commit(&next, version).await?;
        announced.withdraw(self.store).await;
        report.describe(Some(&next));
        Ok(Outcome::Published)
    }

    async fn current(&self) -> Result<Read, PollError> {
        let found = read_pointer(self.store, self.catalog, self.signer).await?;
        let read = found.ok_or_else(|| RollbackError::NoCatalog(self.catalog.clone()))?;
        if read.believed {
            return Ok(read);
        }
        Err(RollbackError::Untrusted.into())
    }

    const fn seal(&self) -> Seal<'_> {
        Seal {
            signer: self.signer,
            catalog: self.catalog,
            may_unsign: false,
        }
    }

    /// The reference is made of the bytes as they lie there, whoever wrote them.
    async fn snapshot(&self, content_hash: Sha256) -> Result<(Snapshot, SnapshotRef), PollError> {
        let key = Key::Snapshot(self.catalog.clone(), content_hash);
        let bytes = match self.store.read_all(&key, DOCUMENT_MAX).await {
            Ok((bytes, _)) => bytes,
            Err(error) if error.is_not_found() => return Err(RollbackError::Gone(content_hash).into()),
            Err(error) => return Err(error.into()),
        };
        let unreadable = |source| ReadError::Document {
            key: key.to_string(),
            source,
        };
        let snapshot = Snapshot::from_bytes(&bytes).map_err(unreadable)?;
        if snapshot.content_hash != content_hash {
            return Err(RollbackError::Mistaken(content_hash).into());
        }
        Ok((snapshot, SnapshotRef::new(self.catalog, content_hash, &bytes)))
    }

    /// A Snapshot that is not the one that was published is damaged, and what it names may be anything. What is signed was
    /// signed before, too: the history that was just verified names the Snapshot by its hash.
    fn vouch(&self, current: &Current, reference: &SnapshotRef, content_hash: Sha256) -> Result<(), RollbackError> {
        let is_recorded = current
            .recorded(content_hash)
            .any(|recorded| recorded == Some(reference.sha256));
        match self.signer {
            Some(_) if !is_recorded => Err(RollbackError::Unvouched(content_hash)),
            _ if current.contradicts(content_hash, reference.sha256) => Err(RollbackError::Mistaken(content_hash)),
            _ => Ok(()),
        }
    }

    /// How the content was verified, which has to be under the policy that is now asked of the source. Of several
    /// publications of it the one that was counts, else the newest.
    fn verified(&self, current: &Current, content_hash: Sha256) -> Result<Option<Verified>, RollbackError> {
        let asked = current.source.verified.as_ref().map(|verified| verified.policy);
        let of_it = current
            .previous
            .iter()
            .filter(|previous| previous.content_hash == content_hash);
        let known: Vec<_> = of_it.filter_map(|previous| previous.verified.as_ref()).collect();
        let fitting = known.iter().find(|verified| Some(verified.policy) == asked);
        let found = fitting.or(known.first()).map(|verified| (*verified).clone());
        if asked.is_none() || fitting.is_some() || self.terms.unverified {
            return Ok(found);
        }
        let how = match found {
            Some(_) => "was verified under another policy",
            None => "was not verified when it was published, as far as is known",
        };
        Err(RollbackError::Unverified { content_hash, how })
    }

    async fn check(&self, snapshot: &Snapshot) -> Result<(), PollError> {
        let findings = missing(self.store, self.catalog, snapshot).await?;
        let Some(Finding { key, problem }) = findings.first() else {
            return Ok(());
        };
        Err(RollbackError::Incomplete {
            content_hash: snapshot.content_hash,
            count: findings.len(),
            first: format!("{key}, which {problem}"),
        }
        .into())
    }

    /// A Snapshot that cannot be read is what one may want to roll back from.
    async fn changes(&self, current: &Current, next: &Snapshot) -> Changes {
        let key = Key::Snapshot(self.catalog.clone(), current.content_hash);
        match self.store.read_document(&key).await {
            Ok(Some((before, _))) => Changes::between(Some(&before), next),
            _ => Changes::default(),
        }
    }

    async fn commit(&self, next: &Current, version: Version) -> Result<(), PollError> {
        let key = Key::Current(self.catalog.clone());
        let condition = Condition::Replace(version);
        self.store.write_document(&key, next, condition).await?;
        Ok(())
    }
}

impl Target {
    fn find(&self, current: &Current) -> Result<Sha256, RollbackError> {
        let earlier = current.previous.iter().map(|previous| previous.content_hash);
        match self {
            Self::Previous => earlier
                .into_iter()
                .find(|hash| *hash != current.content_hash)
                .ok_or(RollbackError::NoPrevious),
            Self::Hash(prefix) => match prefix.parse() {
                Ok(hash) => Ok(hash),
                Err(_) => unique(prefix, earlier.chain([current.content_hash])),
            },
        }
    }
}

fn unique(prefix: &str, hashes: impl Iterator<Item = Sha256>) -> Result<Sha256, RollbackError> {
    let mut fitting: Vec<_> = hashes.filter(|hash| hash.to_string().starts_with(prefix)).collect();
    fitting.sort_unstable();
    fitting.dedup();
    match fitting[..] {
        [hash] => Ok(hash),
        [] => Err(RollbackError::Unknown(prefix.to_owned())),
        _ => Err(RollbackError::Ambiguous {
            prefix: prefix.to_owned(),
            count: fitting.len(),
        }),
    }
}

fn log(report: &Report) {
    let (catalog, outcome) = (&report.catalog, report.outcome.as_str());
    match report.error_text() {
        Some(error) => tracing::error!(%catalog, outcome, error, "rollback"),
        None => tracing::info!(
            %catalog,
            outcome,
            content_hash = report.content_hash.map(tracing::field::display),
            serial = report.serial,
            "rollback"
        ),
    }
}
