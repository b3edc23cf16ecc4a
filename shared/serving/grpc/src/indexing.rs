//! From the Shards of a state to its index.

use std::{sync::Arc, time::Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{Facts, ShardRef, StoredDocument, text};
use olm::{FINDINGS, FactsBuilder, RecordedShard, ValidationSummary};
use reader::{PublishedCatalogs, PublishedState};
use tokio::runtime::Handle;
use work::Budget;

use crate::olm_v0::{ApiIndex, PackageRecord, PackageRecorder};
use crate::{AnswerError, error::failed};

/// Maximum memory of the index of one catalog, in bytes: some ten times that of the largest real
/// one.
const INDEX_BYTES_MAX: usize = 64 << 20;

/// Number of Packages that are read at a time. Two halve the time until a large catalog has its
/// first answer.
const READS: usize = 2;

/// Maximum number of findings in the text of an error.
const FINDINGS_MAX: usize = 3;

/// Maximum number of characters of a package's name in the text of an error.
const NAME_CHARS: usize = 100;

/// Maximum number of characters of the reason for which opm would not serve a package: it may quote
/// a name.
const REASON_CHARS: usize = 300;

/// Makes the index of a state that opm would serve too. Packages with lines of a known index are
/// not read again.
pub(crate) async fn make_index(
    catalogs: PublishedCatalogs,
    state: PublishedState,
    known: Vec<Arc<ApiIndex>>,
) -> Result<Arc<ApiIndex>, AnswerError> {
    let snapshot = state.snapshot().await?;
    let findings = snapshot.facts(FINDINGS.name);
    if let Some(object) = findings {
        let stored = catalogs.object(&object).await?;
        refuse(&Facts::from_stored(&stored).map_err(|error| failed(&error))?)?;
    }
    let began = Instant::now();
    let is_validated = findings.is_some();
    let shards: Vec<ShardRef> = snapshot.shards().cloned().collect();
    let packages = shards.len();
    let records = stream::iter(shards).map(|shard| {
        let mut known = known.iter().filter_map(|known| known.record(&shard.name));
        let known = known
            .find(|record| record.lines == shard.lines.sha256)
            .cloned();
        let state = state.clone();
        let runtime = Handle::current();
        async move {
            if let Some(record) = known {
                return Ok(record);
            }
            let budget = Budget::default();
            let own = budget.clone();
            let reading = work::run(budget, move || {
                runtime.block_on(read_record(&state, &shard, is_validated, &own))
            });
            let record = reading.await.map_err(|error| failed(&error))?;
            record.map(Arc::new)
        }
    });
    let mut records = records.buffered(READS);
    let mut index = ApiIndex::default();
    while let Some(record) = records.try_next().await? {
        index.insert(record);
        if index.memory > INDEX_BYTES_MAX {
            return Err(AnswerError::TooLarge);
        }
    }
    tracing::info!(
        catalog = state.name().as_str(),
        packages,
        memory_bytes = index.memory,
        took_ms = began.elapsed().as_millis(),
        "indexed state"
    );
    Ok(Arc::new(index))
}

/// Makes the record of a Package from its lines.
async fn read_record(
    state: &PublishedState,
    shard: &ShardRef,
    is_validated: bool,
    budget: &Budget,
) -> Result<PackageRecord, AnswerError> {
    let mut recorder = PackageRecorder::new(&shard.name);
    let validated = RecordedShard {
        name: &shard.name,
        metas: &[],
        is_yaml: fbc::is_yaml,
        budget,
    };
    let mut validator = (!is_validated).then(|| (FINDINGS.recorder)(validated));
    let mut chunks = state.shard(shard).await?;
    while let Some(chunk) = chunks.try_next().await? {
        budget.charge_bytes(chunk.len())?;
        recorder.push(&chunk);
        if let Some(validator) = &mut validator {
            validator.push(&chunk);
        }
    }
    if let Some(found) = validator.and_then(|mut validator| validator.finish()) {
        let mut findings = FactsBuilder::new(FINDINGS);
        findings.push(&shard.name, found);
        refuse(&findings.facts)?;
    }
    recorder.finish(shard.lines.sha256).map_err(|reason| {
        let name = text::line(&shard.name, NAME_CHARS);
        AnswerError::Refused(format!(
            "package {name}: {}",
            text::line(&reason, REASON_CHARS)
        ))
    })
}

/// Fails for findings that keep opm from serving a catalog.
fn refuse(findings: &Facts) -> Result<(), AnswerError> {
    let summary = ValidationSummary::of(findings).map_err(|error| failed(&error))?;
    if summary.counts.errors == 0 {
        return Ok(());
    }
    let errors: Vec<String> = summary.errors.into_iter().take(FINDINGS_MAX).collect();
    Err(AnswerError::Refused(errors.join("; ")))
}
