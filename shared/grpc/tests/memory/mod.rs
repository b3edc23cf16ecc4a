//! Catalogs in memory.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use catalog_mirror_grpc::{Published, PublishedError, PublishedState, ShardChunks};
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use model::Sha256;
use registry::{Graph, GraphBuilder, PackageRecorder};

/// Size of the chunks of Shards, in bytes: many lines are in two of them.
pub(crate) const CHUNK: usize = 1000;

/// State of a catalog in memory.
pub(crate) struct MemoryState {
    pub(crate) graph: Graph,
    shards: BTreeMap<String, Vec<u8>>,
    /// Number of chunks that were read.
    pub(crate) reads: Arc<AtomicUsize>,
}

impl MemoryState {
    /// Groups canonical lines by package.
    pub(crate) fn of_lines(lines: &[u8]) -> Arc<Self> {
        let mut shards: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let meta: serde_json::Value = serde_json::from_slice(line).unwrap();
            let name = if meta["schema"] == "olm.package" {
                &meta["name"]
            } else {
                &meta["package"]
            };
            let shard = shards.entry(name.as_str().unwrap_or_default().to_owned());
            shard.or_default().extend_from_slice(line);
        }
        let mut builder = GraphBuilder::new();
        for (name, lines) in &shards {
            let mut recorder = PackageRecorder::new(name);
            recorder.push(lines);
            builder.push(&recorder.finish(Sha256::of(lines)).unwrap());
        }
        Arc::new(Self {
            graph: Graph::parse(builder.finish().into(), 1 << 30).unwrap(),
            shards,
            reads: Arc::default(),
        })
    }
}

impl PublishedState for MemoryState {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn shard<'a>(&'a self, package: &'a str) -> BoxFuture<'a, Result<ShardChunks, PublishedError>> {
        let lines = Bytes::copy_from_slice(&self.shards[package]);
        let reads = Arc::clone(&self.reads);
        let chunks = (0..lines.len()).step_by(CHUNK).map(move |at| {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(lines.slice(at..lines.len().min(at + CHUNK)))
        });
        async { Ok(stream::iter(chunks).boxed()) }.boxed()
    }
}

type State = Result<Arc<MemoryState>, PublishedError>;

/// Catalogs in memory, which tests change.
#[derive(Clone, Default)]
pub(crate) struct MemoryCatalogs(pub(crate) Arc<Mutex<BTreeMap<String, State>>>);

impl MemoryCatalogs {
    pub(crate) fn with(self, name: &str, state: State) -> Self {
        self.0.lock().unwrap().insert(name.to_owned(), state);
        self
    }
}

impl Published for MemoryCatalogs {
    fn names(&self) -> BoxFuture<'_, Result<Vec<String>, PublishedError>> {
        let names = self.0.lock().unwrap().keys().cloned().collect();
        async { Ok(names) }.boxed()
    }

    fn state<'a>(&'a self, catalog: &'a str) -> BoxFuture<'a, Result<Arc<dyn PublishedState>, PublishedError>> {
        let state = self.0.lock().unwrap().get(catalog).cloned();
        let state = state.unwrap_or(Err(PublishedError::NotFound));
        async { state.map(|state| state as Arc<dyn PublishedState>) }.boxed()
    }
}
