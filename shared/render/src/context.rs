use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::Receiver,
    },
};

use model::{Hasher, Sha256, text::chain};
use parking_lot::Mutex;
use work::MemoryShare;
use zstd::bulk::Compressor;

use crate::{
    RenderError, RenderSettings, ShardPart, StoredShards,
    error::shown,
    fragment::{CompressedLines, Fragment, Lines, LinesByPackage, Scratch},
    known::RECORDED_PARTS,
    usage::Usage,
};

/// zstd level of lines that are kept until the rest of their file was read.
const PART_LEVEL: i32 = 1;

/// One chunk of one file, for any worker.
pub(crate) struct ChunkJob {
    pub(crate) place: ChunkPlace,
    pub(crate) chunk: fbc::Chunk,
    /// Memory for the chunk, its parser and its lines.
    pub(crate) memory: MemoryShare,
}

/// The chunk that a fragment comes from.
pub(crate) struct ChunkPlace {
    pub(crate) path: Arc<str>,
    pub(crate) part: usize,
    /// True if the chunk is its whole file.
    pub(crate) sole: bool,
}

/// State that the workers share.
pub(crate) struct RenderContext {
    pub(crate) settings: RenderSettings,
    pub(crate) stored: Arc<dyn StoredShards>,
    pub(crate) scratch: Scratch,
    pub(crate) results: Mutex<WorkerResults>,
    pub(crate) usage: Usage,
    /// Number of parts whose chunks are recorded, or would be.
    recorded: AtomicUsize,
}

#[derive(Default)]
pub(crate) struct WorkerResults {
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) failures: Vec<FileFailure>,
    pub(crate) scratch_error: Option<io::Error>,
}

/// A file that is not FBC. It is reported unless an ignore file excludes it.
#[derive(Clone)]
pub(crate) struct FileFailure {
    pub(crate) path: Arc<str>,
    pub(crate) part: usize,
    pub(crate) reason: String,
    /// Limit that the file exceeds, if that is the reason.
    pub(crate) limit: Option<&'static str>,
}

impl RenderContext {
    pub(crate) fn new(settings: RenderSettings, stored: Arc<dyn StoredShards>) -> Self {
        Self {
            scratch: Scratch::new(settings.memory_bytes),
            usage: Usage::new(&settings.limits),
            recorded: AtomicUsize::new(0),
            results: Mutex::default(),
            settings,
            stored,
        }
    }

    /// Fails if the caller has stopped the work, or if it has taken too many steps.
    pub(crate) fn check_budget(&self) -> Result<(), RenderError> {
        let charged = self.settings.budget.charge(0);
        charged.map_err(|error| RenderError::over_budget(error, "the catalog"))
    }

    /// Fails if the catalog exceeds a limit.
    pub(crate) fn check_limits(&self) -> Result<(), RenderError> {
        let exceeded = self.usage.exceeded();
        exceeded.map_or(Ok(()), |limit| Err(RenderError::Limit(limit)))
    }

    /// Records the problem of a file, which counts as one document.
    pub(crate) fn fail(&self, path: &Arc<str>, part: usize, error: &fbc::FbcError) {
        self.usage.add(path, 1, 0);
        self.results.lock().failures.push(FileFailure {
            path: path.clone(),
            part,
            reason: shown(&chain(error)),
            limit: match &error.kind {
                fbc::FbcErrorKind::Limit { name, .. } => Some(*name),
                _ => None,
            },
        });
    }

    /// Renders chunks until the queue is closed.
    pub(crate) fn work(&self, jobs: &Mutex<Receiver<ChunkJob>>) -> io::Result<()> {
        let mut compressor = Compressor::new(self.settings.shard_level)?;
        compressor.include_checksum(true)?;
        while let Some(job) = next(jobs) {
            if self.usage.is_exceeded() || self.settings.budget.is_stopped() {
                continue;
            }
            let ChunkJob { place, chunk, memory } = job;
            let rendered = self.render(&place, chunk, &mut compressor);
            drop(memory);
            match rendered {
                Ok(fragments) => self.results.lock().fragments.extend(fragments),
                Err(error) => self.results.lock().scratch_error = Some(error),
            }
        }
        Ok(())
    }

    /// Renders a chunk. One that is not FBC has no fragments.
    fn render(
        &self,
        place: &ChunkPlace,
        chunk: fbc::Chunk,
        compressor: &mut Compressor<'_>,
    ) -> io::Result<Vec<Fragment>> {
        let known = self.stored.known_chunks();
        let hash = known.map(|_| {
            let mut hasher = Hasher::new();
            chunk.hash_with(|bytes| hasher.update(bytes));
            Arc::new(hasher.finish())
        });
        if let Some(parts) = known.and_then(|known| known.get(hash.as_deref()?)) {
            let hash = self.recorded(hash, parts.len());
            let fragments = parts.iter().map(|part| self.known_fragment(place, part, hash.clone()));
            return Ok(fragments.collect());
        }
        let mut packages = LinesByPackage::default();
        let mut push = |meta: fbc::Meta<'_>| packages.push(&meta, self.settings.positions);
        if let Err(error) = chunk.metas(&self.settings.limits.document, &mut push) {
            self.fail(&place.path, place.part, &error);
            return Ok(Vec::new());
        }
        // The lines are compressed in the memory of the chunk.
        drop(chunk);
        for lines in packages.0.values() {
            self.usage.lines(&place.path, &lines.metas, lines.bytes.len() as u64);
        }
        let hash = self.recorded(hash, packages.0.len());
        let packages = packages.0.into_iter();
        let fragments = packages.map(|(group, lines)| self.fragment(place, group, lines, hash.clone(), compressor));
        fragments.collect()
    }

    /// Returns the hash of a chunk if its parts may be recorded.
    fn recorded(&self, hash: Option<Arc<Sha256>>, parts: usize) -> Option<Arc<Sha256>> {
        hash.filter(|_| self.recorded.fetch_add(parts, Ordering::Relaxed) + parts <= RECORDED_PARTS)
    }

    fn known_fragment(&self, place: &ChunkPlace, part: &ShardPart, chunk: Option<Arc<Sha256>>) -> Fragment {
        let (shard, _) = &*part.shard;
        let (metas, size) = (part.metas(), part.range.end - part.range.start);
        self.usage.lines(&place.path, &metas, size);
        Fragment {
            path: place.path.clone(),
            part: place.part,
            group: shard.name.as_str().into(),
            metas: metas.into(),
            positions: Arc::default(),
            size,
            whole: None,
            published: Some(Box::new(part.clone())),
            chunk,
            body: CompressedLines::Stored(shard.stored),
        }
    }

    fn fragment(
        &self,
        place: &ChunkPlace,
        group: String,
        mut lines: Lines,
        chunk: Option<Arc<Sha256>>,
        compressor: &mut Compressor<'_>,
    ) -> io::Result<Fragment> {
        // A part is joined with the others, and hashed and compressed again.
        let whole = place.sole.then(|| Sha256::of(&lines.bytes));
        let body = match whole.and_then(|sha256| self.stored.stored(&sha256)) {
            Some(stored) => CompressedLines::Stored(stored),
            None => {
                compressor.set_compression_level(whole.map_or(PART_LEVEL, |_| self.settings.shard_level))?;
                CompressedLines::New(self.scratch.keep(compressor.compress(&lines.bytes)?)?.into())
            }
        };
        lines.metas.shrink_to_fit();
        Ok(Fragment {
            path: place.path.clone(),
            part: place.part,
            group: group.into(),
            metas: lines.metas.into(),
            positions: lines.positions.into(),
            size: lines.bytes.len() as u64,
            whole,
            published: None,
            chunk,
            body,
        })
    }
}

fn next(jobs: &Mutex<Receiver<ChunkJob>>) -> Option<ChunkJob> {
    jobs.lock().recv().ok()
}
