//! Catalogs in memory.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use catalog_mirror_grpc::{Published, PublishedError, PublishedState};
use futures_util::{FutureExt, future::BoxFuture};
use model::Sha256;
use registry::{Graph, GraphBuilder, LineRange, PackageRecorder};

/// State of a catalog in memory.
pub(crate) struct MemoryState {
    pub(crate) graph: Graph,
    shards: BTreeMap<String, Vec<u8>>,
    /// Number of reads of lines.
    pub(crate) reads: AtomicUsize,
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
            reads: AtomicUsize::new(0),
        })
    }
}

impl PublishedState for MemoryState {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn lines<'a>(
        &'a self,
        package: &'a str,
        ranges: &'a [LineRange],
    ) -> BoxFuture<'a, Result<Vec<Bytes>, PublishedError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let read = |range: &LineRange| {
            let offsets = range.offsets();
            Bytes::copy_from_slice(&self.shards[package][offsets.start as usize..offsets.end as usize])
        };
        let lines = ranges.iter().map(read).collect();
        async { Ok(lines) }.boxed()
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
