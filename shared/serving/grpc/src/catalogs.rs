//! The published catalogs as the registry API answers for them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, Shared};
use futures_util::{FutureExt, StreamExt, stream};
use model::Sha256;
use parking_lot::Mutex;
use reader::{PublishedCatalogs, PublishedState, ReaderError};
use server::{ConnectionHandle, Outdated};
use tokio::time::sleep;

use crate::error::{AnswerError, failed};
use crate::{indexing::make_index, olm_v0::ApiIndex};

/// Time for which the names of the catalogs are not asked for again. Each call needs them, and they
/// change when a catalog is published for the first time or removed.
const NAMES_FOR: Duration = Duration::from_secs(1);

/// Time between two looks for newer states of the catalogs that open connections have asked for.
/// Each look costs one request to the store for each of them.
const LOOK_INTERVAL: Duration = Duration::from_secs(3);

/// Maximum number of catalogs that are looked at at a time.
const LOOKS: usize = 4;

/// Maximum number of names of catalogs that are remembered after their removal.
const LABELS_MAX: usize = 10_000;

/// Published catalogs as the registry API answers for them.
pub struct RegistryCatalogs {
    catalogs: PublishedCatalogs,
    /// Name of the catalog for clients that name none. Without it such clients get the only
    /// catalog, if there is only one.
    default: Option<String>,
    /// Catalogs that are served without credentials. `None` if all are.
    anonymous: Option<BTreeSet<String>>,
    known: Mutex<KnownCatalogs>,
}

/// Facts about the catalogs that earlier calls have found.
#[derive(Default)]
struct KnownCatalogs {
    /// Names of the catalogs that clients may name.
    names: Arc<[String]>,
    /// Time at which the names were read.
    read: Option<Instant>,
    /// Names of all catalogs that there were, with dashes for their dots, as hosts have them.
    labels: BTreeSet<String>,
    /// The newest state of each catalog that was asked for. What cannot be served is remembered
    /// too.
    indexes: HashMap<String, KnownIndex>,
    /// Contents that calls are answered from, by catalog. A catalog stays here after its removal.
    answered: HashMap<String, AnsweredContent>,
}

/// Content that calls are answered from, until there is an index of another one.
#[derive(Default)]
struct AnsweredContent {
    /// Hash of all lines; `None` before the first index.
    content: Option<Sha256>,
    /// Mark that the connections hold whose calls were answered from it, or got an error since.
    outdated: Outdated,
}

/// Index of a state, which a task of its own makes: it goes on if the call that began it is given
/// up.
type IndexTask = Shared<BoxFuture<'static, Result<Arc<ApiIndex>, AnswerError>>>;

struct KnownIndex {
    /// Hash of the stored Snapshot.
    identity: Sha256,
    index: IndexTask,
}

/// Published state with its index.
pub(crate) struct IndexedState {
    pub(crate) state: PublishedState,
    pub(crate) index: Arc<ApiIndex>,
}

impl RegistryCatalogs {
    /// Creates the API's view of the catalogs of a store. `default` answers clients that name no
    /// catalog, and only catalogs in `anonymous` are served, if it is given.
    pub fn new(
        catalogs: PublishedCatalogs,
        default: Option<String>,
        anonymous: Option<BTreeSet<String>>,
    ) -> Self {
        Self {
            catalogs,
            default,
            anonymous,
            known: Mutex::default(),
        }
    }

    /// Returns when each catalog has its index, or cannot have one. Until then clients would wait.
    pub async fn prepare(&self) {
        let names = loop {
            match self.names().await {
                Ok(names) => break names,
                Err(_) => sleep(NAMES_FOR).await,
            }
        };
        for name in &*names {
            drop(self.state(name, None).await);
        }
    }

    /// Looks for newer states of the catalogs that open connections have asked for, for ever.
    ///
    /// OLM v0 keeps what it has read for half an hour, unless its connection ends. So connections
    /// end some seconds after other content is published, once that has its index.
    pub async fn follow(&self) {
        loop {
            sleep(LOOK_INTERVAL).await;
            let asked: Vec<String> = {
                let known = self.known.lock();
                let asked = known.answered.iter();
                let asked = asked.filter(|(_, answered)| answered.outdated.is_held());
                asked.map(|(name, _)| name.clone()).collect()
            };
            let looks = stream::iter(asked);
            looks
                .for_each_concurrent(LOOKS, async |name| drop(self.state(&name, None).await))
                .await;
        }
    }

    /// Returns the names of the catalogs that clients may name.
    pub(crate) async fn names(&self) -> Result<Arc<[String]>, AnswerError> {
        {
            let known = self.known.lock();
            if known.read.is_some_and(|read| read.elapsed() < NAMES_FOR) {
                return Ok(Arc::clone(&known.names));
            }
        }
        let read = Some(Instant::now());
        let all = self.catalogs.all().await?;
        let mut known = self.known.lock();
        let all = all.iter().map(|state| state.name().to_string());
        let all = all.inspect(|name| {
            if known.labels.len() < LABELS_MAX {
                known.labels.insert(as_label(name));
            }
        });
        let names: Arc<[String]> = match &self.anonymous {
            Some(allowed) => all.filter(|name| allowed.contains(name)).collect(),
            None => all.collect(),
        };
        known.indexes.retain(|name, _| names.contains(name));
        known.names = Arc::clone(&names);
        known.read = read;
        Ok(names)
    }

    /// Returns the name of the catalog that a client asks: by the first label of the host, the
    /// default, or because there is only one. The host of a catalog that was removed, or that is
    /// not for all clients, gets no other one.
    pub(crate) async fn choose(&self, label: Option<&str>) -> Result<String, AnswerError> {
        let names = self.names().await?;
        let wanted = [label, self.default.as_deref()];
        for wanted in wanted.into_iter().flatten() {
            // A label has no dots, so a client of `v4.20` asks `v4-20`.
            let is_equal = names.iter().find(|name| *name == wanted);
            if let Some(name) =
                is_equal.or_else(|| names.iter().find(|name| as_label(name) == wanted))
            {
                return Ok(name.clone());
            }
            if self.known.lock().labels.contains(&as_label(wanted)) {
                return Err(AnswerError::NotServed);
            }
        }
        match (&*names, &self.default) {
            ([only], None) => Ok(only.clone()),
            ([], _) => Err(AnswerError::UnknownCatalog(
                "no catalog is published".to_owned(),
            )),
            (names, _) => Err(AnswerError::UnknownCatalog(format!(
                "name a catalog in the first label of the host, as in CATALOG.example.com:50051; there are: {}",
                names.join(", ")
            ))),
        }
    }

    /// Returns the state of a catalog with its index, which the first call for a state waits for.
    /// The connection of the call ends some seconds after other content was published.
    pub(crate) async fn state(
        &self,
        name: &str,
        connection: Option<&ConnectionHandle>,
    ) -> Result<IndexedState, AnswerError> {
        let state = match self.catalogs.find(name).await {
            // The names were read before.
            Err(ReaderError::UnknownCatalog(_) | ReaderError::CatalogName(_)) => {
                return Err(AnswerError::NotServed);
            }
            state => state?,
        };
        let index = self.index(&state).await;
        let outdated = self.outdated(&state, index.is_ok());
        if let Some(connection) = connection {
            connection.end_after(&outdated);
        }
        let index = index?;
        Ok(IndexedState { state, index })
    }

    /// Returns the mark of the content of a state, and sets that of the content before. Without an
    /// index a call is answered with an error, and no connection ends for that.
    fn outdated(&self, state: &PublishedState, has_index: bool) -> Outdated {
        let name = state.name().as_str();
        let content = Some(state.current().content_hash);
        let known = &mut *self.known.lock();
        let newest = known.indexes.get(name);
        let is_newest = newest.is_some_and(|newest| newest.identity == state.identity());
        let answered = known.answered.entry(name.to_owned()).or_default();
        // A publication of the same content is no reason to ask again.
        if !has_index || answered.content == content {
            return answered.outdated.clone();
        }
        if !is_newest {
            // A later state was found while this one got its index.
            let outdated = Outdated::default();
            outdated.set();
            return outdated;
        }
        answered.content = content;
        std::mem::take(&mut answered.outdated).set();
        answered.outdated.clone()
    }

    /// Returns the index of a state. The first call for a state starts to make it.
    fn index(&self, state: &PublishedState) -> IndexTask {
        let name = state.name().as_str();
        let identity = state.identity();
        let indexes = &mut self.known.lock().indexes;
        if let Some(known) = indexes.get(name)
            && known.identity == identity
            // A failure of the store may be over with this call.
            && !matches!(known.index.peek(), Some(Err(AnswerError::Unavailable)))
        {
            return known.index.clone();
        }
        // A composed catalog has packages of others.
        let others = indexes
            .values()
            .filter_map(|known| known.index.peek()?.as_ref().ok())
            .cloned()
            .collect();
        let task = tokio::spawn(make_index(self.catalogs.clone(), state.clone(), others));
        let index = task
            .map(|ended| ended.unwrap_or_else(|error| Err(failed(&error))))
            .boxed()
            .shared();
        let known = KnownIndex {
            identity,
            index: index.clone(),
        };
        indexes.insert(name.to_owned(), known);
        index
    }
}

/// Returns the label of a host that names a catalog, which has no dots.
fn as_label(name: &str) -> String {
    name.replace('.', "-")
}
