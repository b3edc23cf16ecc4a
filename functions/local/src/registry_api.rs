//! The registry API of OLM v0 over the published catalogs of a store.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures_util::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture};
use grpc::{Published, PublishedError, PublishedState, ShardChunks};
use model::{
    Findings, Kind, Sha256, Snapshot, StoredDocument,
    text::{self, chain},
};
use olm::RULES_VERSION;
use publish::{FindingsRecorder, InvalidCatalog};
use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use reader::{PublishedCatalogs, PublishedState as CatalogState, ReaderError};
use registry::Graph;

/// Memory for the graphs of published states, in bytes: those of six large catalogs. A graph that was evicted is read again.
const GRAPHS_BYTES: u64 = 32 << 20;

/// Time for which the names of the catalogs are not asked for again. Each call needs them, and they change when a catalog is
/// published for the first time or removed.
const NAMES_FOR: Duration = Duration::from_secs(1);

/// Estimated number of states in memory.
const GRAPHS: usize = 32;

/// Maximum number of findings in the text of an error.
const FINDINGS_MAX: usize = 3;

/// Maximum number of names of catalogs that are remembered after their removal.
const LABELS_MAX: usize = 10_000;

/// Maximum number of characters of a package's name in the text of an error.
const NAME_CHARS: usize = 100;

/// Published catalogs as the registry API answers for them.
pub(crate) struct RegistryCatalogs {
    catalogs: PublishedCatalogs,
    /// Catalogs that are served without credentials. `None` if all are.
    anonymous: Option<BTreeSet<String>>,
    names: Mutex<Option<KnownNames>>,
    /// Names of all catalogs that there were, with dashes for their dots, as hosts have them.
    labels: Mutex<BTreeSet<String>>,
    /// States by the hash of their stored Snapshots. What cannot be served is remembered too.
    states: GraphCache,
}

/// States by the hash of their stored Snapshots.
type GraphCache = Cache<Sha256, Result<Graph, PublishedError>, GraphWeight>;

/// Names of the catalogs that may be named, and the time at which they were read.
#[derive(Clone)]
struct KnownNames {
    names: Arc<[String]>,
    read: Instant,
}

/// Weighs states by the memory that they take, in bytes.
#[derive(Debug, Clone, Copy)]
struct GraphWeight;

/// Published state whose graph was read.
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
            states: graph_cache(),
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
        let key = content.identity();
        let graph = match self.states.get(&key) {
            Some(graph) => graph,
            None => {
                let read = read_graph(&self.catalogs, &content).await;
                // A failure of the store may be over with the next call.
                if !matches!(read, Err(PublishedError::Unavailable(_))) {
                    self.states.insert(key, read.clone());
                }
                read
            }
        };
        Ok(Arc::new(GraphState { content, graph: graph? }))
    }
}

/// Returns the cache of graphs. In one part, because a large graph would not fit into a share of the cache.
fn graph_cache() -> GraphCache {
    let options = OptionsBuilder::new()
        .shards(1)
        .estimated_items_capacity(GRAPHS)
        .weight_capacity(GRAPHS_BYTES)
        .build()
        .expect("both capacities are given");
    let hasher = DefaultHashBuilder::default();
    Cache::with_options(options, GraphWeight, hasher, DefaultLifecycle::default())
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

impl Weighter<Sha256, Result<Graph, PublishedError>> for GraphWeight {
    fn weight(&self, _: &Sha256, state: &Result<Graph, PublishedError>) -> u64 {
        match state {
            // The index of a graph takes less than its bytes.
            Ok(graph) => 2 * graph.size() as u64,
            Err(_) => 1 << 10,
        }
    }
}

/// Reads the graph of a state that opm would serve too.
async fn read_graph(catalogs: &PublishedCatalogs, content: &CatalogState) -> Result<Graph, PublishedError> {
    let snapshot = content.snapshot().await.map_err(unavailable)?;
    let findings = match snapshot.findings {
        Some(object) => read_findings(catalogs, object).await?,
        None => validate(content.clone(), Arc::clone(&snapshot)).await?,
    };
    if let Some(invalid) = InvalidCatalog::of(&findings) {
        let examples = invalid.examples.into_iter().take(FINDINGS_MAX);
        return Err(PublishedError::Refused(examples.collect::<Vec<_>>().join("; ")));
    }
    let object = snapshot.graph.ok_or(PublishedError::NoGraph)?.with_kind(Kind::Graph);
    let stored = catalogs.object(&object).await.map_err(unavailable)?;
    let parsed = tokio::task::spawn_blocking(move || Graph::from_stored(&stored)).await;
    let parsed = parsed.map_err(|error| PublishedError::Unavailable(error.to_string()))?;
    let damaged = |error| PublishedError::Unavailable(chain(&error));
    let graph = parsed.map_err(damaged)?;
    match graph.refusal().map_err(damaged)? {
        Some((package, reason)) => Err(PublishedError::Refused(format!(
            "package {}: {reason}",
            text::line(&package, NAME_CHARS)
        ))),
        None => Ok(graph),
    }
}

async fn read_findings(catalogs: &PublishedCatalogs, object: model::ObjectDigest) -> Result<Findings, PublishedError> {
    let stored = catalogs.object(&object.with_kind(Kind::Findings)).await;
    let findings = Findings::from_stored(&stored.map_err(unavailable)?);
    findings.map_err(|error| PublishedError::Unavailable(chain(&error)))
}

/// Returns the findings of a state that was published without a validation.
async fn validate(content: CatalogState, snapshot: Arc<Snapshot>) -> Result<Findings, PublishedError> {
    let runtime = tokio::runtime::Handle::current();
    let work = move || {
        let found = snapshot.shards().map(|shard| {
            let mut recorder = FindingsRecorder::new(&shard.name);
            let read = runtime.block_on(async {
                let mut chunks = content.shard(shard).await?;
                while let Some(chunk) = chunks.try_next().await? {
                    recorder.push(&chunk);
                }
                Ok::<(), ReaderError>(())
            });
            read.map(|()| recorder.finish()).map_err(unavailable)
        });
        Findings::collect(RULES_VERSION, found)
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
