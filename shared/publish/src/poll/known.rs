use std::collections::HashMap;

use bytes::Bytes;
use model::{
    Findings, Kind, ObjectDigest, PackageFindings, SearchDocument, SearchPackage, Sha256, Snapshot, text::chain,
};
use olm::{RULES_VERSION, SEARCH_VERSION};
use registry::Graph;
use render::Shard;
use store::{Store, read_object, read_stored};

/// Facts of published Snapshots by the lines of their Packages, which count again for the same lines.
#[derive(Default)]
pub struct KnownFacts {
    pub(super) findings: HashMap<Sha256, PackageFindings>,
    pub(super) search: HashMap<Sha256, SearchPackage>,
    graphs: Vec<Graph>,
}

impl KnownFacts {
    /// Reads the facts of Snapshots, as far as they can be read.
    pub async fn load<'s>(store: &dyn Store, snapshots: impl Iterator<Item = &'s Snapshot>) -> Self {
        let mut known = Self::default();
        // They only save work. The hourly look at the stored objects finds and repairs a damaged document.
        for snapshot in snapshots {
            if let Some(object) = snapshot.findings {
                match read_stored::<Findings>(store, &object).await {
                    Ok(findings) if findings.rules == RULES_VERSION => known.add_findings(snapshot, findings),
                    Ok(_) => {}
                    Err(error) => warn_unreadable("findings", &error),
                }
            }
            if let Some(object) = snapshot.search {
                match read_stored::<SearchDocument>(store, &object).await {
                    Ok(search) if search.rules == SEARCH_VERSION => known.add_search(snapshot, search),
                    Ok(_) => {}
                    Err(error) => warn_unreadable("texts for search", &error),
                }
            }
            if let Some(object) = snapshot.graph {
                match read_graph(store, &object).await {
                    Ok(graph) => known.graphs.push(graph),
                    Err(error) => tracing::warn!(error, "cannot read the published graph"),
                }
            }
        }
        known
    }

    /// Returns the record of a Package with these lines.
    pub(super) fn record(&self, shard: &Shard) -> Option<Bytes> {
        let mut graphs = self.graphs.iter();
        graphs.find_map(|graph| graph.record_of(&shard.name, shard.lines.sha256))
    }

    fn add_findings(&mut self, snapshot: &Snapshot, findings: Findings) {
        let packages = findings.packages.into_iter();
        let mut packages: HashMap<String, PackageFindings> =
            packages.map(|package| (package.name.clone(), package)).collect();
        for shard in snapshot.shards() {
            // A package that is not listed has none.
            let found = packages.remove(&shard.name);
            let found = found.unwrap_or_else(|| PackageFindings::new(&shard.name));
            if found.is_complete() {
                self.findings.insert(shard.lines.sha256, found);
            }
        }
    }

    fn add_search(&mut self, snapshot: &Snapshot, search: SearchDocument) {
        let packages = search.packages.into_iter().filter(SearchPackage::is_complete);
        for package in packages {
            if let Some(shard) = snapshot.package(&package.name) {
                self.search.insert(shard.lines.sha256, package);
            }
        }
    }
}

async fn read_graph(store: &dyn Store, object: &ObjectDigest) -> Result<Graph, String> {
    let stored = read_object(store, &object.with_kind(Kind::Graph)).await;
    let stored = stored.map_err(|error| chain(&error))?;
    Graph::from_stored(&stored).map_err(|error| chain(&error))
}

fn warn_unreadable(what: &str, error: &dyn std::error::Error) {
    tracing::warn!(error = chain(error), "cannot read the published {what}");
}
