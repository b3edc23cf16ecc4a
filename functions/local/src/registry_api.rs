//! The registry API of OLM v0 over the published catalogs of a store.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures_util::{
    FutureExt, StreamExt, TryStreamExt,
    future::{BoxFuture, Shared},
};
use grpc::{Published, PublishedError, PublishedState, ShardChunks};
use model::{
    Facts, ObjectRef, Sha256, ShardRef, Snapshot, StoredDocument,
    text::{self, chain},
};
use olm::{FINDINGS, FactsBuilder, RecordedShard, Recording, ValidationSummary};
use reader::{PublishedCatalogs, PublishedState as CatalogState, ReaderError};
use registry::{GRAPH_BYTES_MAX, Graph, GraphBuilder, PackageRecord, PackageRecorder};

/// Time for which the names of the catalogs are not asked for again. Each call needs them, and they change when a catalog is
/// published for the first time or removed.
const NAMES_FOR: Duration = Duration::from_secs(1);

/// Maximum number of findings in the text of an error.
const FINDINGS_MAX: usize = 3;

/// Maximum number of names of catalogs that are remembered after their removal.
const LABELS_MAX: usize = 10_000;

/// Maximum number of characters of a package's name in the text of an error.
const NAME_CHARS: usize = 100;

/// Maximum number of characters of the reason for which opm would not serve a package: it may quote a name.
const REASON_CHARS: usize = 300;

/// Published catalogs as the registry API answers for them.
pub(crate) struct RegistryCatalogs {
    catalogs: PublishedCatalogs,
    /// Catalogs that are served without credentials. `None` if all are.
    anonymous: Option<BTreeSet<String>>,
    names: Mutex<Option<KnownNames>>,
    /// Names of all catalogs that there were, with dashes for their dots, as hosts have them.
    labels: Mutex<BTreeSet<String>>,
    /// The newest state of each catalog that was asked for. What cannot be served is remembered too.
    states: Mutex<HashMap<String, IndexedState>>,
}

/// Graph of a state, which a task of its own makes: it goes on if the call that began it is given up.
type GraphTask = Shared<BoxFuture<'static, Result<Graph, PublishedError>>>;

/// State whose graph is made or was made.
struct IndexedState {
    /// Hash of the stored Snapshot.
    identity: Sha256,
    graph: GraphTask,
}

/// Names of the catalogs that may be named, and the time at which they were read.
#[derive(Clone)]
struct KnownNames {
    names: Arc<[String]>,
    read: Instant,
}

/// Published state whose graph was made.
struct GraphState {
    content: CatalogState,
    graph: Graph,
}

impl RegistryCatalogs {
    pub(crate) fn new(catalogs: PublishedCatalogs, anonymous: Option<Vec<String>>) -> Self {
        Self {
            catalogs,
            anonymous: anonymous.map(BTreeSet::from_iter),
            names: Mutex::default(),
            labels: Mutex::default(),
            states: Mutex::default(),
        }
    }

    fn is_allowed(&self, name: &str) -> bool {
        self.anonymous.as_ref().is_none_or(|allowed| allowed.contains(name))
    }

    async fn known_names(&self) -> Result<Arc<[String]>, PublishedError> {
        let known = locked(&self.names).clone();
        if let Some(known) = known.filter(|known| known.read.elapsed() < NAMES_FOR) {
            return Ok(known.names);
        }
        let read = Instant::now();
        let all = self.catalogs.all().await.map_err(unavailable)?;
        let names = all.iter().map(|state| state.name().to_string());
        let names: Arc<[String]> = names.filter(|name| self.is_allowed(name)).collect();
        let known = KnownNames {
            names: Arc::clone(&names),
            read,
        };
        *locked(&self.names) = Some(known);
        locked(&self.states).retain(|name, _| names.contains(name));
        let mut labels = locked(&self.labels);
        if labels.len() < LABELS_MAX {
            labels.extend(all.iter().map(|state| as_label(state.name().as_str())));
        }
        Ok(names)
    }

    async fn find(&self, name: &str) -> Result<Arc<dyn PublishedState>, PublishedError> {
        // Most hosts have a first label that is no catalog, which needs no look into the store.
        let names = self.known_names().await?;
        if !names.iter().any(|known| known == name) {
            let label = as_label(name);
            let is_catalog = locked(&self.labels).contains(&label);
            return Err(
                match is_catalog && !names.iter().any(|known| as_label(known) == label) {
                    true => PublishedError::NotServed,
                    false => PublishedError::NotFound,
                },
            );
        }
        let content = match self.catalogs.find(name).await.map_err(unavailable) {
            // The names were read before.
            Err(PublishedError::NotFound) => return Err(PublishedError::NotServed),
            content => content?,
        };
        let graph = self.graph(name, &content);
        let made = graph.clone().await;
        if matches!(made, Err(PublishedError::Unavailable(_))) {
            // A failure of the store may be over with the next call.
            let mut states = locked(&self.states);
            if states.get(name).is_some_and(|known| known.graph.ptr_eq(&graph)) {
                states.remove(name);
            }
        }
        Ok(Arc::new(GraphState { content, graph: made? }))
    }

    /// Returns the graph of a state. The first call for a state starts to make it.
    fn graph(&self, name: &str, content: &CatalogState) -> GraphTask {
        let identity = content.identity();
        let mut states = locked(&self.states);
        if let Some(known) = states.get(name).filter(|known| known.identity == identity) {
            return known.graph.clone();
        }
        // A composed catalog has packages of others.
        let known = states.values().filter_map(|state| state.graph.peek()?.as_ref().ok());
        let known: Vec<Graph> = known.cloned().collect();
        let task = tokio::spawn(make_graph(self.catalogs.clone(), content.clone(), known));
        let graph = task.map(|ended| ended.unwrap_or_else(|error| Err(PublishedError::Unavailable(error.to_string()))));
        let graph = graph.boxed().shared();
        let state = IndexedState {
            identity,
            graph: graph.clone(),
        };
        states.insert(name.to_owned(), state);
        graph
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the label of a host that names a catalog, which has no dots.
fn as_label(name: &str) -> String {
    name.replace('.', "-")
}

impl Published for RegistryCatalogs {
    fn names(&self) -> BoxFuture<'_, Result<Vec<String>, PublishedError>> {
        let names = async { Ok(self.known_names().await?.to_vec()) };
        names.boxed()
    }

    fn state<'a>(&'a self, catalog: &'a str) -> BoxFuture<'a, Result<Arc<dyn PublishedState>, PublishedError>> {
        self.find(catalog).boxed()
    }
}

impl PublishedState for GraphState {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn shard<'a>(&'a self, package: &'a str) -> BoxFuture<'a, Result<ShardChunks, PublishedError>> {
        let read = async move {
            let chunks = self.content.package(package).await.map_err(unavailable)?;
            Ok(chunks.map_err(unavailable).boxed())
        };
        read.boxed()
    }
}

/// Makes the graph of a state that opm would serve too. Packages with lines of a known graph are not read again.
async fn make_graph(
    catalogs: PublishedCatalogs,
    content: CatalogState,
    known: Vec<Graph>,
) -> Result<Graph, PublishedError> {
    let snapshot = content.snapshot().await.map_err(unavailable)?;
    let findings = match snapshot.facts(FINDINGS.name) {
        Some(object) => read_findings(&catalogs, object).await?,
        None => validate(content.clone(), Arc::clone(&snapshot)).await?,
    };
    let damaged = |error: serde_json::Error| PublishedError::Unavailable(error.to_string());
    let summary = ValidationSummary::of(&findings).map_err(damaged)?;
    if summary.counts.errors > 0 {
        let examples = summary.errors.into_iter().take(FINDINGS_MAX);
        return Err(PublishedError::Refused(examples.collect::<Vec<_>>().join("; ")));
    }
    let runtime = tokio::runtime::Handle::current();
    let work = move || {
        let began = Instant::now();
        let mut builder = GraphBuilder::new();
        let mut read = 0_usize;
        for shard in snapshot.shards() {
            let mut known = known.iter();
            match known.find_map(|graph| graph.record_of(&shard.name, shard.lines.sha256)) {
                Some(record) => builder.push_raw(&record),
                None => {
                    builder.push(&runtime.block_on(read_record(&content, shard))?);
                    read += 1;
                }
            }
            if builder.size() > GRAPH_BYTES_MAX {
                return Err(PublishedError::TooLarge);
            }
        }
        let graph = Graph::parse(builder.finish().into(), GRAPH_BYTES_MAX);
        tracing::info!(
            packages_read = read,
            took_ms = began.elapsed().as_millis(),
            "indexed state"
        );
        graph.map_err(|error| PublishedError::Unavailable(chain(&error)))
    };
    let made = tokio::task::spawn_blocking(work).await;
    made.map_err(|error| PublishedError::Unavailable(error.to_string()))?
}

/// Makes the record of a Package from its lines.
async fn read_record(content: &CatalogState, shard: &ShardRef) -> Result<PackageRecord, PublishedError> {
    let mut recorder = PackageRecorder::new(&shard.name);
    let mut chunks = content.shard(shard).await.map_err(unavailable)?;
    while let Some(chunk) = chunks.try_next().await.map_err(unavailable)? {
        recorder.push(&chunk);
    }
    recorder.finish(shard.lines.sha256).map_err(|error| {
        PublishedError::Refused(format!(
            "package {}: {}",
            text::line(&shard.name, NAME_CHARS),
            text::line(&chain(&error), REASON_CHARS)
        ))
    })
}

async fn read_findings(catalogs: &PublishedCatalogs, object: ObjectRef) -> Result<Facts, PublishedError> {
    let stored = catalogs.object(&object).await;
    let findings = Facts::from_stored(&stored.map_err(unavailable)?);
    findings.map_err(|error| PublishedError::Unavailable(chain(&error)))
}

/// Returns the findings of a state that was published without a validation.
async fn validate(content: CatalogState, snapshot: Arc<Snapshot>) -> Result<Facts, PublishedError> {
    let runtime = tokio::runtime::Handle::current();
    let work = move || {
        let mut findings = FactsBuilder::new(FINDINGS);
        for shard in snapshot.shards() {
            let mut recorder = (FINDINGS.recorder)(RecordedShard {
                name: &shard.name,
                metas: &[],
                is_yaml: fbc::is_yaml,
            });
            let read = runtime.block_on(async {
                let mut chunks = content.shard(shard).await?;
                while let Some(chunk) = chunks.try_next().await? {
                    recorder.push(&chunk);
                }
                Ok::<(), ReaderError>(())
            });
            read.map_err(unavailable)?;
            if let Recording::Done(part) = recorder.finish() {
                findings.push(&shard.name, part);
            }
        }
        Ok(findings.finish())
    };
    let validated = tokio::task::spawn_blocking(work).await;
    validated.map_err(|error| PublishedError::Unavailable(error.to_string()))?
}

fn unavailable(error: ReaderError) -> PublishedError {
    match error {
        ReaderError::UnknownCatalog(_) | ReaderError::CatalogName(_) => PublishedError::NotFound,
        error => {
            // The client learns only that there was a failure.
            let error: &dyn std::error::Error = &error;
            tracing::error!(error, "cannot answer a call");
            PublishedError::Unavailable("the store cannot be read at the moment; try again later".to_owned())
        }
    }
}
