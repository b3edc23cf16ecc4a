//! Documents about new content: findings of the validation, texts for search, and the graph of the registry API. Each
//! is a function of the lines of the Packages, so that a Package with known lines is not read again.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use bytes::Bytes;
use model::{
    Findings, PackageFindings, SearchDocument, SearchPackage, Snapshot,
    text::{self, chain},
};
use olm::{RULES_VERSION, SEARCH_VERSION, SearchRecord, SearchRecorder};
use registry::{GRAPH_BYTES_MAX, GraphBuilder, PackageRecord, PackageRecorder};
use render::{RenderError, Rendering, Shard, StopFlag};

use super::{
    known::KnownFacts,
    once::Poll,
    validation::{FindingsRecorder, ValidationMode},
};
use crate::{PollError, Transaction};

/// Number of Packages that each worker reads before their facts are merged: it bounds the facts in memory.
const BATCH: usize = 4;

/// Maximum length of the reason for which a Package has no record, in characters: it may quote a name.
const REASON_CHARS: usize = 300;

/// Content that was rendered.
pub(crate) struct NewContent {
    pub(crate) rendering: Rendering,
    /// Published states that it was composed of; empty if it was pulled.
    pub(crate) inputs: Vec<Arc<Snapshot>>,
}

/// Content that may be published, with the documents about it.
pub(crate) struct DescribedContent {
    pub(crate) rendering: Rendering,
    /// `None` if the catalog is not validated.
    pub(crate) findings: Option<Findings>,
    pub(crate) search: SearchDocument,
    /// Stored bytes of the graph; `None` if opm would not serve the catalog.
    pub(crate) graph: Option<Vec<u8>>,
}

impl Poll<'_> {
    /// Reads what is new in the content, and validates it. Fails if the catalog refuses what is found.
    pub(crate) async fn describe(
        &mut self,
        transaction: &Transaction,
        content: NewContent,
        recheck: bool,
        stop: &StopFlag,
    ) -> Result<DescribedContent, PollError> {
        let NewContent { rendering, inputs } = content;
        // A recheck relies on nothing that is stored.
        let base = transaction.base_snapshot().await?;
        let trusted = base
            .into_iter()
            .chain(inputs.iter().map(|input| &**input))
            .filter(|_| !recheck);
        let reader = FactReader {
            is_validated: self.catalog.validation != ValidationMode::Off,
            known: KnownFacts::load(&*self.mirror.store, trusted).await,
            workers: self.mirror.settings.render.workers.max(1),
            stop: stop.clone(),
            rendering,
        };
        let work = move || {
            let found = reader.read();
            (reader.rendering, found)
        };
        let (rendering, found) = tokio::task::spawn_blocking(work).await?;
        let facts = found?;
        self.report.packages_validated += facts.validated;
        if let Some(findings) = &facts.findings {
            self.judge(findings)?;
        }
        Ok(DescribedContent {
            rendering,
            findings: facts.findings,
            search: facts.search,
            graph: facts.graph,
        })
    }
}

/// Documents about one content, a function of its lines.
pub struct CatalogFacts {
    /// Findings of the validation; `None` if the content was not validated.
    pub findings: Option<Findings>,
    /// Texts by which Packages are found.
    pub search: SearchDocument,
    /// Stored bytes of the graph for the registry API; `None` if opm would not serve the content.
    pub graph: Option<Vec<u8>>,
    /// Number of Shards whose lines were validated.
    pub(crate) validated: usize,
}

/// Facts of one Package, or of the global group.
struct ShardFacts {
    /// `None` if the catalog is not validated.
    findings: Option<PackageFindings>,
    /// `None` for the global group.
    search: Option<SearchPackage>,
    /// Record for the registry API; `None` until the Shard is read.
    record: Option<Bytes>,
}

/// Reader of the Shards whose facts are not known.
pub struct FactReader {
    /// Content with the positions of its Metas.
    pub rendering: Rendering,
    /// True if the content is validated.
    pub is_validated: bool,
    /// Facts that are known.
    pub known: KnownFacts,
    /// Number of threads that read, at least one.
    pub workers: usize,
    /// Flag that ends the reading.
    pub stop: StopFlag,
}

impl FactReader {
    /// Returns the facts of the content, which are the same whatever is known. Blocks.
    ///
    /// # Errors
    /// [`RenderError::Damaged`] for a Shard that does not decompress, and [`RenderError::Stopped`].
    pub fn read(&self) -> Result<CatalogFacts, RenderError> {
        let shards = self.rendering.shards();
        let unknown = shards.iter().filter(|shard| self.needs(shard));
        let unknown: Vec<&Shard> = unknown.collect();
        let validated = unknown.iter().filter(|shard| self.needs_findings(shard)).count();
        let mut read = unknown
            .chunks(self.workers * BATCH)
            .flat_map(|batch| self.read_batch(batch));
        let mut search = SearchDocument::new(SEARCH_VERSION);
        let mut graph = Some(GraphBuilder::new());
        let mut findings = shards.iter().map(|shard| {
            let facts = match self.needs(shard) {
                true => read.next().expect("each shard that is not known is read")?,
                false => self.known_facts(shard),
            };
            facts.search.into_iter().for_each(|package| search.push(package));
            if let (Some(record), Some(builder)) = (facts.record, &mut graph) {
                builder.push_raw(&record);
                if builder.size() > GRAPH_BYTES_MAX {
                    tracing::info!(
                        limit = GRAPH_BYTES_MAX,
                        "the registry API cannot answer: the graph is too large"
                    );
                    graph = None;
                }
            }
            Ok::<_, RenderError>(facts.findings)
        });
        let findings = match self.is_validated {
            true => {
                let findings = findings.map(|found| found.map(|found| found.expect("each shard is validated")));
                Some(Findings::collect(RULES_VERSION, findings)?)
            }
            false => {
                findings.try_for_each(|found| found.map(drop))?;
                None
            }
        };
        let graph = graph.map(GraphBuilder::into_stored).transpose();
        Ok(CatalogFacts {
            findings,
            search,
            graph: graph.map_err(RenderError::Scratch)?.flatten(),
            validated,
        })
    }

    fn needs(&self, shard: &Shard) -> bool {
        self.needs_findings(shard) || self.needs_search(shard) || self.known.record(shard).is_none()
    }

    fn needs_findings(&self, shard: &Shard) -> bool {
        self.is_validated && !self.known.findings.contains_key(&shard.lines.sha256)
    }

    fn needs_search(&self, shard: &Shard) -> bool {
        !shard.name.is_empty() && !self.known.search.contains_key(&shard.lines.sha256)
    }

    fn known_facts(&self, shard: &Shard) -> ShardFacts {
        let lines = &shard.lines.sha256;
        ShardFacts {
            findings: self.known.findings.get(lines).filter(|_| self.is_validated).cloned(),
            search: self.known.search.get(lines).cloned(),
            record: self.known.record(shard),
        }
    }

    /// Reads some Shards side by side. The facts come in the order of the Shards.
    fn read_batch(&self, batch: &[&Shard]) -> Vec<Result<ShardFacts, RenderError>> {
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::with_capacity(batch.len()));
        let work = || {
            while let Some((at, shard)) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                batch.get(at).map(|shard| (at, shard))
            } {
                let facts = self.read_shard(shard);
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.push((at, facts));
            }
        };
        match self.workers.min(batch.len()) {
            // One package changes at most polls.
            1 => work(),
            workers => thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work)))),
        }
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, facts)| facts).collect()
    }

    fn read_shard(&self, shard: &Shard) -> Result<ShardFacts, RenderError> {
        let mut facts = self.known_facts(shard);
        let mut validator = self.needs_findings(shard).then(|| FindingsRecorder::new(&shard.name));
        let mut recorder = self
            .needs_search(shard)
            .then(|| SearchRecorder::new(&shard.name, &shard.metas));
        let mut registry = facts.record.is_none().then(|| PackageRecorder::new(&shard.name));
        self.read_lines(shard, |lines| {
            if let Some(registry) = &mut registry {
                registry.push(lines);
            }
            if let Some(validator) = &mut validator {
                validator.push(lines);
            }
            if let Some(recorder) = &mut recorder {
                recorder.push(lines);
            }
        })?;
        if let Some(validator) = validator {
            facts.findings = Some(validator.finish());
        }
        if let Some(registry) = registry {
            let record = registry.finish(shard.lines.sha256).unwrap_or_else(|error| {
                let reason = text::line(&chain(&error), REASON_CHARS);
                tracing::info!(
                    package = shard.name,
                    reason,
                    "the registry API cannot answer for the new content"
                );
                PackageRecord::refused(&shard.name, shard.lines.sha256, reason)
            });
            facts.record = Some(record.to_bytes());
        }
        if let Some(recorder) = recorder {
            facts.search = Some(self.search_texts(shard, recorder)?);
        }
        Ok(facts)
    }

    fn search_texts(&self, shard: &Shard, recorder: SearchRecorder<'_>) -> Result<SearchPackage, RenderError> {
        let head = match recorder.finish() {
            SearchRecord::Package(package) => return Ok(*package),
            SearchRecord::NeedsHead(head) => head,
        };
        let mut recorder = SearchRecorder::new(&shard.name, &shard.metas).with_head(head);
        self.read_lines(shard, |lines| recorder.push(lines))?;
        Ok(recorder.into_package())
    }

    fn read_lines(&self, shard: &Shard, mut each: impl FnMut(&[u8])) -> Result<(), RenderError> {
        let read = self.rendering.read_lines(shard, |lines| {
            if !self.stop.is_stopped() {
                each(lines);
            }
        });
        read.map_err(|error| match error {
            // A shard of the store that does not decompress, which a recheck repairs.
            RenderError::Scratch(_) if shard.is_stored() => RenderError::Damaged {
                sha256: shard.stored.sha256,
            },
            error => error,
        })?;
        match self.stop.is_stopped() {
            true => Err(RenderError::Stopped),
            false => Ok(()),
        }
    }
}
