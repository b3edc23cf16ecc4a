//! How a publication that relies on objects which lie there already, and a sweep that removes what nothing names, find
//! each other. Each says what it is about to do before it looks at what the other one says, so at least one of them sees
//! the other, whatever happens between: the publication writes its [`Intent`] and then reads [`Sweep`]; the sweep writes
//! [`Sweep`] and then reads the Intents.

use std::time::Duration;

use layout::{CatalogName, Intent, Key, Sha256, Snapshot, Sweep};
use store::{Condition, ReadError, Store, StoreError, StoreExt, Version};
use tokio::time::{Instant, sleep};

use crate::{Finding, Problem, missing};

/// How long one stretch of removing may last before the sweep has to look again at what is named.
pub(crate) const STRETCH: Duration = Duration::from_secs(60);
/// A sweep that shows no life for so long has died: a stretch, and several times the longest request of any store.
const ABANDONED: Duration = Duration::from_secs(300);
/// Between two looks at a sweep that goes on.
const PAUSE: Duration = Duration::from_secs(1);

/// Why a publication cannot be committed.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A sweep took what the publication relied on. Starting again writes it anew.
    #[error("{0} was removed because nothing named it, and has to be written again")]
    Swept(String),
}

/// Taken before a publication looks at the first object that it may rely on.
#[derive(Debug, Clone)]
pub struct Watch {
    seen: Sweep,
    /// What is about to be replaced or forgotten.
    spared: Vec<Sha256>,
}

/// A publication that sweeps know of.
#[derive(Debug)]
#[must_use]
pub struct Announced {
    intent: Key,
}

impl Watch {
    /// Remembers how often there was a sweep.
    ///
    /// # Errors
    /// As [`StoreExt::read_document`].
    pub async fn start(store: &dyn Store) -> Result<Self, ReadError> {
        let (seen, _) = state(store).await?;
        Ok(Self {
            seen,
            spared: Vec::new(),
        })
    }

    /// Remembers to say that readers may hold a content that is about to be replaced, so that sweeps spare it for their
    /// grace period. For copies: what they publish may be long published elsewhere, and by its date the content before it
    /// was replaced then.
    pub fn spare(&mut self, content_hash: Sha256) {
        self.spared.push(content_hash);
    }

    /// To be called when everything is written, right before the commit: once it returns, no sweep takes anything that
    /// `snapshot` names. Waits for a sweep under way, and looks at every object again if there was one meanwhile.
    ///
    /// # Errors
    /// [`SettleError::Swept`] if one is gone, or that the store cannot be asked.
    pub async fn settle(
        self,
        store: &dyn Store,
        catalog: &CatalogName,
        snapshot: &Snapshot,
    ) -> Result<Announced, SettleError> {
        let (announced, sweep) = self.announce(store, catalog, snapshot.content_hash).await?;
        // One that had begun before goes on removing, and if it dies, nothing tells that it did.
        if sweep != self.seen || self.seen.active {
            everything_is_there(store, catalog, snapshot).await?;
        }
        Ok(announced)
    }

    /// Writes every Intent at a time when nobody sweeps: a sweep under way may take one that was there long before, and
    /// the next one has to see it. The last sweep, as it was seen after that.
    async fn announce(
        &self,
        store: &dyn Store,
        catalog: &CatalogName,
        content_hash: Sha256,
    ) -> Result<(Announced, Sweep), SettleError> {
        let intent = Key::Intent(catalog.clone(), content_hash);
        let mut patience = Patience::default();
        loop {
            for spared in &self.spared {
                spare(store, catalog, *spared).await?;
            }
            let document = Intent {
                content_hash,
                for_readers: false,
            };
            store.write_document(&intent, &document, Condition::Always).await?;
            let (sweep, _, has_waited) = patience.wait(store).await?;
            if !has_waited {
                return Ok((Announced { intent }, sweep));
            }
        }
    }
}

/// Writes an Intent for readers, unless somebody is about to publish the content.
async fn spare(store: &dyn Store, catalog: &CatalogName, content_hash: Sha256) -> Result<(), SettleError> {
    let key = Key::Intent(catalog.clone(), content_hash);
    let (for_readers, condition) = match store.read_document::<Intent>(&key).await {
        Ok(Some((intent, version))) => (intent.for_readers, Condition::Replace(version)),
        Ok(None) => (true, Condition::CreateOnly),
        Err(ReadError::Document { .. }) => (false, Condition::Always),
        Err(error) => return Err(error.into()),
    };
    let intent = |for_readers| Intent {
        content_hash,
        for_readers,
    };
    match store.write_document(&key, &intent(for_readers), condition).await {
        // Whoever was faster may be about to publish it.
        Err(error) if error.is_conflict() => store.write_document(&key, &intent(false), Condition::Always).await?,
        written => written?,
    };
    Ok(())
}

impl Announced {
    /// To be called after the commit, which now protects what it names. After one that failed the Intent has to stay,
    /// since another writer may be about to publish the same content; sweeps remove it when it is old.
    pub async fn withdraw(self, store: &dyn Store) {
        if let Err(error) = store.delete(&self.intent).await {
            tracing::debug!(key = %self.intent, error = telemetry::chain(&error), "an intent stays behind");
        }
    }
}

async fn everything_is_there(store: &dyn Store, catalog: &CatalogName, snapshot: &Snapshot) -> Result<(), SettleError> {
    let key = Key::Snapshot(catalog.clone(), snapshot.content_hash);
    match store.head(&key).await {
        Ok(_) => {}
        Err(error) if error.is_not_found() => return Err(SettleError::Swept(key.to_string())),
        Err(error) => return Err(error.into()),
    }
    let found = missing(store, catalog, snapshot).await?.into_iter();
    let gone = |Finding { key, problem }| (problem == Problem::Missing).then_some(key);
    found
        .filter_map(gone)
        .next()
        .map_or(Ok(()), |key| Err(SettleError::Swept(key)))
}

/// The sweep as it stands, and the version to replace it by.
async fn state(store: &dyn Store) -> Result<(Sweep, Option<Version>), ReadError> {
    let found = store.read_document::<Sweep>(&Key::Sweep).await?;
    Ok(found.map_or_else(Default::default, |(sweep, version)| (sweep, Some(version))))
}

/// Waits for the sweep of somebody else, who may be dead. Only the time that passes here counts, so no two clocks are
/// ever compared.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    seen: Option<(Sweep, Instant)>,
}

impl Patience {
    /// Waits until there is no sweep to wait for: how things stand then, with the version to replace that by, and whether
    /// there was one.
    pub(crate) async fn wait(&mut self, store: &dyn Store) -> Result<(Sweep, Option<Version>, bool), ReadError> {
        let mut has_waited = false;
        loop {
            let (sweep, version) = state(store).await?;
            if !self.has_to_wait(sweep).await {
                return Ok((sweep, version, has_waited));
            }
            has_waited = true;
        }
    }

    /// Waits a moment if there is a sweep; false once there is none to wait for.
    async fn has_to_wait(&mut self, sweep: Sweep) -> bool {
        if !sweep.active {
            return false;
        }
        let since = match self.seen {
            Some((seen, since)) if seen == sweep => since,
            _ => {
                tracing::info!(serial = sweep.serial, "waiting for a sweep to end");
                Instant::now()
            }
        };
        self.seen = Some((sweep, since));
        if since.elapsed() >= ABANDONED {
            tracing::warn!(serial = sweep.serial, "a sweep has died without saying so");
            return false;
        }
        sleep(PAUSE).await;
        true
    }
}
