//! Facts about new content. Each is a function of the lines of a Package, so that a Package with
//! known lines is not read again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::{Facts, Sha256, Snapshot, text::Chain};
use olm::{FACT_KINDS, FINDINGS, FactKind, FactsBuilder, RecordedShard};
use render::{RenderError, Rendering, Shard};
use serde_json::value::RawValue;
use store::{Store, read_stored};
use work::{for_each, run};

use crate::PollError;

/// Maximum size of the lines that are read before the facts about them are merged, in bytes: it
/// bounds the facts in memory.
const BATCH_BYTES: u64 = 16 << 20;

/// Facts to record about new content, and the states that have some of them.
pub(super) struct WantedFacts<'a> {
    /// Store of the published states.
    pub(super) store: &'a dyn Store,
    /// Published states whose facts count again.
    pub(super) trusted: Vec<&'a Snapshot>,
    /// True if the content is validated.
    pub(super) is_validated: bool,
    /// Number of threads that read, at least one.
    pub(super) workers: usize,
}

/// New content that was read for its facts.
pub(super) struct Described {
    pub(super) facts: CatalogFacts,
    /// Stored bytes of the index.
    pub(super) index: Vec<u8>,
}

/// Reads what is new in the content, and validates it.
pub(super) async fn describe(
    rendering: Arc<Rendering>,
    wanted: WantedFacts<'_>,
) -> Result<Described, PollError> {
    let mut kinds = FACT_KINDS.to_vec();
    if !wanted.is_validated {
        kinds.retain(|kind| kind.name != FINDINGS.name);
    }
    let reader = FactReader {
        kinds,
        known: KnownFacts::load(wanted.store, wanted.trusted.into_iter()).await,
        workers: wanted.workers,
        rendering,
    };
    let budget = reader.rendering.budget().clone();
    let described = run(budget, move || {
        Ok::<_, RenderError>(Described {
            facts: reader.read()?,
            index: reader.rendering.index().map_err(RenderError::Scratch)?,
        })
    });
    Ok(described.await??)
}

/// Documents about one content, a function of its lines.
pub struct CatalogFacts {
    /// Facts by their kind. Those of the validation are absent if the content was not validated.
    pub documents: BTreeMap<&'static str, Facts>,
    /// Number of Shards whose lines were validated.
    pub(super) validated: usize,
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
        let mut validated = 0;
        if is_validated {
            let new = shards
                .iter()
                .filter(|shard| self.known.part(&FINDINGS, shard).is_none());
            validated = new.count();
        }
        let mut documents: Vec<FactsBuilder> =
            self.kinds.iter().copied().map(FactsBuilder::new).collect();
        let mut rest = shards;
        while !rest.is_empty() {
            let (batch, others) = rest.split_at(batch_length(rest));
            rest = others;
            // One package changes at most polls.
            let unknown = batch.iter().filter(|shard| !self.knows(shard)).count();
            let parts = for_each(
                batch.iter().collect(),
                self.workers.min(unknown),
                |shard: &&Shard| shard.lines.size,
                |shard: &Shard| self.read_shard(shard),
            );
            for (shard, parts) in batch.iter().zip(parts) {
                for (document, part) in documents.iter_mut().zip(parts?) {
                    document.push(&shard.name, part);
                }
            }
        }
        let mut facts = BTreeMap::new();
        for (kind, document) in self.kinds.iter().zip(documents) {
            facts.insert(kind.name, document.facts);
        }
        Ok(CatalogFacts {
            documents: facts,
            validated,
        })
    }

    /// Returns true if all facts of a Shard are known.
    fn knows(&self, shard: &Shard) -> bool {
        self.kinds
            .iter()
            .all(|kind| self.known.part(kind, shard).is_some())
    }

    /// Returns the parts of a Shard, in the order of the kinds.
    fn read_shard(&self, shard: &Shard) -> Result<Vec<Box<RawValue>>, RenderError> {
        let budget = self.rendering.budget();
        let recorded = RecordedShard {
            name: &shard.name,
            metas: &shard.metas,
            is_yaml: fbc::is_yaml,
            budget,
        };
        let mut parts: Vec<Option<Box<RawValue>>> = Vec::new();
        for kind in &self.kinds {
            parts.push(self.known.part(kind, shard).map(ToOwned::to_owned));
        }
        let unknown = parts
            .iter_mut()
            .zip(&self.kinds)
            .filter(|(part, _)| part.is_none());
        let mut recorders: Vec<_> = unknown
            .map(|(part, kind)| (part, (kind.recorder)(recorded)))
            .collect();
        while !recorders.is_empty() {
            self.rendering.read_lines(shard, |lines| {
                if budget.charge_bytes(lines.len()).is_ok() {
                    recorders
                        .iter_mut()
                        .for_each(|(_, recorder)| recorder.push(lines));
                }
            })?;
            self.rendering.check_budget()?;
            recorders.retain_mut(|(part, recorder)| {
                **part = recorder.finish();
                part.is_none()
            });
        }
        drop(recorders);
        Ok(parts.into_iter().flatten().collect())
    }
}

/// Returns the number of Shards at the start whose lines have at most [`BATCH_BYTES`], at least
/// one.
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
    parts: HashMap<(&'static str, Sha256), Box<RawValue>>,
}

impl KnownFacts {
    /// Reads the facts of Snapshots, as far as they can be read.
    pub async fn load<'s>(
        store: &dyn Store,
        snapshots: impl Iterator<Item = &'s Snapshot>,
    ) -> Self {
        let mut known = Self::default();
        for snapshot in snapshots {
            for kind in FACT_KINDS {
                let Some(object) = snapshot.facts.get(kind.name) else {
                    continue;
                };
                match read_stored::<Facts>(store, object).await {
                    Ok(facts) if facts.version == kind.version => known.add(kind, snapshot, facts),
                    Ok(_) => {}
                    // They only save work. The hourly look at the stored objects finds and repairs
                    // a damaged document.
                    Err(error) => {
                        tracing::warn!(
                            error = %Chain(&error),
                            kind = kind.name,
                            "cannot read published facts"
                        );
                    }
                }
            }
        }
        known
    }

    fn add(&mut self, kind: FactKind, snapshot: &Snapshot, mut facts: Facts) {
        for shard in snapshot.shards() {
            if facts.shortened.contains_key(&shard.name) {
                continue;
            }
            let part = facts.packages.remove(&shard.name);
            // A copy of another mirror may have been published with any parts.
            if part.as_ref().is_none_or(|part| (kind.is_part)(part)) {
                let part = part.unwrap_or_else(|| RawValue::NULL.to_owned());
                self.parts.insert((kind.name, shard.lines.sha256), part);
            }
        }
    }

    fn part(&self, kind: &FactKind, shard: &Shard) -> Option<&RawValue> {
        self.parts
            .get(&(kind.name, shard.lines.sha256))
            .map(|part| &**part)
    }
}
