use std::{ops::Range, sync::Arc};

use futures_util::TryStreamExt;
use model::{Sha256, text::LineBuffer};
use reader::{PublishedState, WeightedCache, pick};
use tokio::{runtime::Handle, sync::Semaphore};
use work::Budget;

use crate::olm_v0::{ContentsBuilder, PackageContents, PackageRecord};
use crate::{AnswerError, error::failed};

/// Memory for contents, in bytes: those of a large catalog.
const CONTENTS_BYTES: usize = 24 << 20;

/// Maximum number of packages whose contents are made at the same time: each takes several times
/// its longest line.
const BUILDS: usize = 2;

/// Contents of packages, or the reason for which they have none, by the hash of their lines.
pub(crate) struct ContentCache {
    known: WeightedCache<Sha256, Known>,
    builds: Semaphore,
}

type Known = Result<Arc<PackageContents>, AnswerError>;

impl Default for ContentCache {
    fn default() -> Self {
        Self {
            // In one part, because a large package takes a third of it.
            known: WeightedCache::new(CONTENTS_BYTES as u64, 1, |known| match known {
                Ok(contents) => contents.memory as u64,
                Err(_) => 1 << 10,
            }),
            builds: Semaphore::new(BUILDS),
        }
    }
}

impl ContentCache {
    /// Returns the contents of all bundles in a package. The first call makes them.
    pub(crate) async fn get(&self, state: &PublishedState, record: &Arc<PackageRecord>) -> Known {
        let known = self.known.get_or_load(&record.lines, || async {
            let _turn = self.builds.acquire().await;
            let state = state.clone();
            let record = Arc::clone(record);
            let runtime = Handle::current();
            let budget = Budget::default();
            let own = budget.clone();
            let built = work::run(budget, move || build(&state, &record, &runtime, &own)).await;
            match built.map_err(|error| failed(&error))? {
                // They would be too large again.
                Err(error) if !matches!(error, AnswerError::ContentsTooLarge { .. }) => Err(error),
                built => Ok(built.map(Arc::new)),
            }
        });
        known.await?
    }
}

/// Reads the Shard of the package once, or twice as far as the line of the package. Blocks.
fn build(
    state: &PublishedState,
    record: &Arc<PackageRecord>,
    runtime: &Handle,
    budget: &Budget,
) -> Result<PackageContents, AnswerError> {
    let read = |ranges: Vec<Range<u64>>, each: &mut dyn FnMut(&[u8])| {
        let mut lines = LineBuffer::default();
        let mut chunks = pick(runtime.block_on(state.package(&record.name))?, ranges);
        while let Some(chunk) = runtime.block_on(chunks.try_next())? {
            budget.charge_bytes(chunk.len())?;
            lines.push(&chunk, &mut *each);
        }
        Ok::<_, AnswerError>(())
    };
    let mut package_line = Vec::new();
    let range = record.package_line.clone().unwrap_or_default();
    read(vec![range], &mut |line| package_line = line.to_vec())?;
    let mut builder = ContentsBuilder::new(Arc::clone(record), &package_line, CONTENTS_BYTES / 2)?;
    let mut bundles: Vec<usize> = (0..record.bundles.len()).collect();
    bundles.sort_by_key(|at| record.bundles[*at].line.start);
    let ranges = bundles
        .iter()
        .map(|at| record.bundles[*at].line.clone())
        .collect();
    let mut bundles = bundles.into_iter();
    read(ranges, &mut |line| {
        if let Some(at) = bundles.next() {
            builder.add(at, line);
        }
    })?;
    builder.finish()
}
