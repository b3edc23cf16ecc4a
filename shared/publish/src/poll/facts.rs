//! Facts about new content. Each is a function of the lines of a Package, so that a Package with known lines is not read again.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use model::{Facts, Sha256, Snapshot, ValidationCounts, text::chain};
use olm::{FACT_KINDS, FINDINGS, FactKind, FactsBuilder, RecordedShard, Recorder};
use render::{RenderError, Rendering, Shard};
use serde_json::value::RawValue;
use store::{Store, read_stored};
use work::{for_each, run};

use super::{once::Poll, validation::ValidationMode};
use crate::{PollError, Transaction};

/// Maximum size of the lines that are read before the facts about them are merged, in bytes: it bounds the facts in memory.
const BATCH_BYTES: u64 = 16 << 20;

/// Content that was rendered.
pub(crate) struct NewContent {
    pub(crate) rendering: Rendering,
    /// Published states that it was composed of; empty if it was pulled.
    pub(crate) inputs: Vec<Arc<Snapshot>>,
}

impl Poll<'_> {
    /// Prepares to read what is new in the content.
    pub(crate) async fn fact_reader(
        &self,
        transaction: &Transaction,
        content: NewContent,
    ) -> Result<FactReader, PollError> {
        // A recheck relies on nothing that is stored.
        let base = transaction.base_snapshot().await?;
        let inputs = content.inputs.iter().map(|input| &**input);
        let trusted = base.into_iter().chain(inputs).filter(|_| !self.recheck);
        let is_validated = self.catalog.validation != ValidationMode::Off;
        let kinds = FACT_KINDS.into_iter();
        Ok(FactReader {
            kinds: kinds
                .filter(|kind| is_validated || kind.name != FINDINGS.name)
                .collect(),
            known: KnownFacts::load(&*self.mirror.store, trusted).await,
            workers: self.mirror.settings.render.workers.max(1),
            rendering: Arc::new(content.rendering),
        })
    }

    /// Reads what is new in the content, and validates it. Fails if the catalog refuses what is found.
    /// Returns the stored bytes of the index and the numbers of findings too; no numbers if the catalog is not validated.
    pub(crate) async fn describe(
        &mut self,
        reader: FactReader,
    ) -> Result<(CatalogFacts, Vec<u8>, Option<ValidationCounts>), PollError> {
        let budget = reader.rendering.budget().clone();
        let read = move || {
            let facts = reader.read()?;
            let index = reader.rendering.index().map_err(RenderError::Scratch)?;
            Ok::<_, RenderError>((facts, index))
        };
        let (facts, index) = run(budget, read).await??;
        self.report.packages_validated += facts.validated;
        let findings = facts.documents.get(FINDINGS.name);
        let counts = findings.map(|findings| self.judge(findings)).transpose()?;
        Ok((facts, index, counts))
    }
}

/// Documents about one content, a function of its lines.
pub struct CatalogFacts {
    /// Facts by their kind. Those of the validation are absent if the content was not validated.
    pub documents: BTreeMap<&'static str, Facts>,
    /// Number of Shards whose lines were validated.
    pub(crate) validated: usize,
}

/// Reader of the Shards whose facts are not known.
pub struct FactReader {
    /// Content with the positions of its Metas.
    pub rendering: Arc<Rendering>,
    /// Kinds that are recorded.
    pub kinds: Vec<FactKind>,
    /// Facts that are known.
    pub known: KnownFacts,
    /// Number of threads that read, at least one.
    pub workers: usize,
}

impl FactReader {
    /// Returns the facts of the content, which are the same whatever is known. Blocks.
    ///
    /// # Errors
    /// [`RenderError::Damaged`] for a Shard that does not decompress, and the errors of the budget.
    pub fn read(&self) -> Result<CatalogFacts, RenderError> {
        let shards = self.rendering.shards();
        let is_validated = self.kinds.iter().any(|kind| kind.name == FINDINGS.name);
        let is_new = |shard: &&Shard| is_validated && self.known.part(&FINDINGS, shard).is_none();
        let validated = shards.iter().filter(is_new).count();
        let mut documents: Vec<FactsBuilder> = self.kinds.iter().copied().map(FactsBuilder::new).collect();
        let mut rest = shards;
        while !rest.is_empty() {
            let batch;
            (batch, rest) = rest.split_at(batch_length(rest));
            // One package changes at most polls.
            let unknown = batch.iter().filter(|shard| !self.is_known(shard)).count();
            let size = |shard: &&Shard| shard.lines.size;
            let parts = for_each(batch.iter().collect(), self.workers.min(unknown), size, |shard| {
                self.read_shard(shard)
            });
            for (shard, parts) in batch.iter().zip(parts) {
                for (document, part) in documents.iter_mut().zip(parts?) {
                    document.push(&shard.name, part);
                }
            }
        }
        let documents = documents.into_iter().map(|document| document.facts);
        Ok(CatalogFacts {
            documents: self.kinds.iter().map(|kind| kind.name).zip(documents).collect(),
            validated,
        })
    }

    fn is_known(&self, shard: &Shard) -> bool {
        self.kinds.iter().all(|kind| self.known.part(kind, shard).is_some())
    }

    /// Returns the parts of a Shard, in the order of the kinds.
    fn read_shard(&self, shard: &Shard) -> Result<Vec<Box<RawValue>>, RenderError> {
        let recorded = RecordedShard {
            name: &shard.name,
            metas: &shard.metas,
            is_yaml: fbc::is_yaml,
            budget: self.rendering.budget(),
        };
        let known = |kind: &FactKind| self.known.part(kind, shard).map(ToOwned::to_owned);
        let parts = self.kinds.iter().map(|kind| ((kind.recorder)(recorded), known(kind)));
        let mut parts: Vec<(Box<dyn Recorder>, Option<Box<RawValue>>)> = parts.collect();
        while parts.iter().any(|(_, part)| part.is_none()) {
            let mut unknown: Vec<_> = parts.iter_mut().filter(|(_, part)| part.is_none()).collect();
            self.read_lines(shard, |lines| {
                unknown.iter_mut().for_each(|(recorder, _)| recorder.push(lines));
            })?;
            for (recorder, part) in unknown {
                *part = recorder.finish();
            }
        }
        Ok(parts.into_iter().filter_map(|(_, part)| part).collect())
    }

    fn read_lines(&self, shard: &Shard, mut each: impl FnMut(&[u8])) -> Result<(), RenderError> {
        let budget = self.rendering.budget();
        self.rendering.read_lines(shard, |lines| {
            if budget.charge_bytes(lines.len()).is_ok() {
                each(lines);
            }
        })?;
        self.rendering.check_budget()
    }
}

/// Returns the number of Shards at the start whose lines have at most [`BATCH_BYTES`], at least one.
fn batch_length(shards: &[Shard]) -> usize {
    let mut bytes = 0_u64;
    let fits = shards.iter().take_while(|shard| {
        bytes = bytes.saturating_add(shard.lines.size);
        bytes <= BATCH_BYTES
    });
    fits.count().max(1)
}

/// Facts of published Snapshots, which count again for Packages with the same lines.
#[derive(Default)]
pub struct KnownFacts {
    /// Parts by the kind and the lines. A part of `null` says that there are no facts.
    parts: HashMap<&'static str, HashMap<Sha256, Box<RawValue>>>,
}

impl KnownFacts {
    /// Reads the facts of Snapshots, as far as they can be read.
    pub async fn load<'s>(store: &dyn Store, snapshots: impl Iterator<Item = &'s Snapshot>) -> Self {
        let mut known = Self::default();
        for snapshot in snapshots {
            for kind in FACT_KINDS {
                let Some(object) = snapshot.facts.get(kind.name) else {
                    continue;
                };
                match read_stored::<Facts>(store, object).await {
                    Ok(facts) if facts.version == kind.version => known.add(kind, snapshot, facts),
                    Ok(_) => {}
                    // They only save work. The hourly look at the stored objects finds and repairs a damaged document.
                    Err(error) => {
                        tracing::warn!(error = chain(&error), kind = kind.name, "cannot read published facts");
                    }
                }
            }
        }
        known
    }

    fn add(&mut self, kind: FactKind, snapshot: &Snapshot, mut facts: Facts) {
        let parts = self.parts.entry(kind.name).or_default();
        for shard in snapshot
            .shards()
            .filter(|shard| !facts.shortened.contains_key(&shard.name))
        {
            let part = facts.packages.remove(&shard.name);
            // A copy of another mirror may have been published with any parts.
            if part.as_ref().is_none_or(|part| (kind.is_part)(part)) {
                parts.insert(shard.lines.sha256, part.unwrap_or_else(|| RawValue::NULL.to_owned()));
            }
        }
    }

    fn part(&self, kind: &FactKind, shard: &Shard) -> Option<&RawValue> {
        self.parts.get(kind.name)?.get(&shard.lines.sha256).map(|part| &**part)
    }
}
