use std::sync::{Arc, mpsc::Receiver};
use std::{collections::BTreeMap, io, mem};

use fbc::FbcErrorKind;
use model::{Content, Hasher, ZSTD_WINDOW_LOG_MAX, text::chain};
use parking_lot::Mutex;
use work::MemoryShare;
use zstd::bulk::Compressor;

use crate::error::shown;
use crate::fragment::{ChunkPlace, CompressedLines, Fragment, Lines, Scratch};
use crate::stored::load;
use crate::usage::Usage;
use crate::{FileProblem, RenderError, RenderSettings, ShardPart, StoredShards};

/// zstd level of lines that are kept until the rest of their file was read.
const PART_LEVEL: i32 = 1;

/// One chunk of one file, for any worker.
pub(crate) struct ChunkJob {
    pub(crate) path: Arc<str>,
    /// Number of the chunk in its file, from 0.
    pub(crate) part: usize,
    /// True if the chunk is its whole file.
    pub(crate) sole: bool,
    pub(crate) chunk: fbc::Chunk,
    /// Memory for the chunk, its parser and its lines.
    pub(crate) _memory: MemoryShare,
}

/// A chunk that was rendered.
#[derive(Clone)]
pub(crate) struct RenderedChunk {
    pub(crate) place: Arc<ChunkPlace>,
    /// Its lines by Package. A problem is reported unless an ignore file excludes the file.
    pub(crate) fragments: Result<Vec<Fragment>, FileProblem>,
}

/// Memory that a worker uses for one chunk after the other.
struct Reused {
    compressor: Compressor<'static>,
    lines: Vec<u8>,
}

/// The rendered chunks of each file, by its path.
pub(crate) type RenderedFiles = BTreeMap<Arc<str>, Vec<RenderedChunk>>;

/// State that the workers share.
pub(crate) struct RenderContext {
    pub(crate) settings: RenderSettings,
    pub(crate) stored: Arc<dyn StoredShards>,
    pub(crate) scratch: Scratch,
    pub(crate) files: Mutex<RenderedFiles>,
    pub(crate) usage: Usage,
}

impl RenderContext {
    pub(crate) fn new(settings: RenderSettings, stored: Arc<dyn StoredShards>) -> Self {
        Self {
            scratch: Scratch::new(settings.memory_bytes),
            usage: Usage::new(&settings.limits),
            files: Mutex::default(),
            settings,
            stored,
        }
    }

    /// Returns the compressed bytes of lines. Bytes of the store are not checked here.
    pub(crate) fn read(&self, lines: &CompressedLines) -> Result<Vec<u8>, RenderError> {
        match lines {
            CompressedLines::New(kept) => self.scratch.read(kept).map_err(RenderError::Scratch),
            CompressedLines::Stored(stored) => load(&*self.stored, stored),
        }
    }

    /// Fails if the caller has stopped the work, or if it has taken too many steps.
    pub(crate) fn check_budget(&self) -> Result<(), RenderError> {
        let charged = self.settings.budget.charge(0);
        charged.map_err(|error| RenderError::over_budget(error, "the catalog"))
    }

    /// Records the problem of a file, which counts as one document.
    pub(crate) fn fail(&self, path: &Arc<str>, part: usize, error: &fbc::FbcError) {
        self.usage.add(path, 1, 0);
        let problem = FileProblem {
            path: shown(path),
            reason: shown(&chain(error)),
            limit: match &error.kind {
                FbcErrorKind::Limit { name, .. } => Some(*name),
                _ => None,
            },
        };
        self.keep(ChunkPlace::new(path, part, None), Err(problem));
    }

    fn keep(&self, place: Arc<ChunkPlace>, fragments: Result<Vec<Fragment>, FileProblem>) {
        let mut files = self.files.lock();
        let file = files.entry(place.path.clone()).or_default();
        file.push(RenderedChunk { place, fragments });
    }

    /// Renders chunks until the queue is closed.
    pub(crate) fn work(&self, jobs: &Mutex<Receiver<ChunkJob>>) -> io::Result<()> {
        let mut compressor = Compressor::new(self.settings.shard_level)?;
        compressor.include_checksum(true)?;
        compressor.window_log(ZSTD_WINDOW_LOG_MAX)?;
        let mut reused = Reused {
            compressor,
            lines: Vec::new(),
        };
        let mut ended = Ok(());
        loop {
            // The lock is released before the chunk is rendered.
            let received = jobs.lock().recv();
            let Ok(job) = received else {
                return ended;
            };
            // The queue is emptied after an error too: the caller is to learn the error, and not
            // that the workers have stopped.
            if ended.is_ok() && !self.usage.is_exceeded() && !self.settings.budget.is_stopped() {
                ended = self.render(job, &mut reused);
            }
        }
    }

    fn render(&self, job: ChunkJob, reused: &mut Reused) -> io::Result<()> {
        let known = self.stored.known_chunks();
        let hash = known.map(|_| {
            let mut hasher = Hasher::new();
            job.chunk.hash_with(|bytes| hasher.update(bytes));
            hasher.finish()
        });
        let place = ChunkPlace::new(&job.path, job.part, hash);
        if let Some(parts) = known.and_then(|known| known.get(&hash?)) {
            let fragments = parts
                .iter()
                .map(|part| self.known_fragment(&place, part))
                .collect();
            self.keep(place, Ok(fragments));
            return Ok(());
        }
        let mut packages = BTreeMap::<String, Lines>::new();
        let limits = &self.settings.limits.document;
        let parsed = job.chunk.metas(limits, &mut |meta: fbc::Meta<'_>| {
            let lines = match packages.get_mut(meta.group()) {
                Some(lines) => lines,
                None => packages
                    .entry(meta.group().to_owned())
                    .or_insert_with(|| Lines {
                        bytes: mem::take(&mut reused.lines),
                        ..Lines::default()
                    }),
            };
            lines.push(&meta, self.settings.positions);
        });
        if let Err(error) = parsed {
            self.fail(&job.path, job.part, &error);
            return Ok(());
        }
        // The lines are compressed in the memory of the chunk, which the job holds to its end.
        drop(job.chunk);
        for lines in packages.values() {
            self.usage
                .lines(&job.path, &lines.metas, lines.bytes.len() as u64);
        }
        let mut fragments = Vec::new();
        for (group, lines) in packages {
            fragments.push(self.fragment(&place, job.sole, group, lines, reused)?);
        }
        self.keep(place, Ok(fragments));
        Ok(())
    }

    fn known_fragment(&self, place: &Arc<ChunkPlace>, part: &ShardPart) -> Fragment {
        let (shard, _) = &*part.shard;
        let metas = part.metas();
        let size = part.range.end - part.range.start;
        self.usage.lines(&place.path, &metas, size);
        Fragment {
            place: place.clone(),
            group: shard.name.as_str().into(),
            metas: metas.into(),
            positions: Arc::default(),
            size,
            whole: None,
            published: Some(Box::new(part.clone())),
            body: CompressedLines::Stored(shard.stored),
        }
    }

    fn fragment(
        &self,
        place: &Arc<ChunkPlace>,
        sole: bool,
        group: String,
        mut lines: Lines,
        reused: &mut Reused,
    ) -> io::Result<Fragment> {
        // A part is joined with the others, and hashed and compressed again.
        let whole = sole.then(|| Content::of(&lines.bytes));
        let body = match whole.and_then(|whole| self.stored.stored(&whole.sha256)) {
            Some(stored) => CompressedLines::Stored(stored),
            None => {
                let level = whole.map_or(PART_LEVEL, |_| self.settings.shard_level);
                reused.compressor.set_compression_level(level)?;
                let frame = reused.compressor.compress(&lines.bytes)?;
                CompressedLines::New(self.scratch.keep(&frame)?)
            }
        };
        lines.metas.shrink_to_fit();
        let size = lines.bytes.len() as u64;
        if lines.bytes.capacity() / 2 <= self.settings.chunk_bytes {
            lines.bytes.clear();
            reused.lines = lines.bytes;
        }
        Ok(Fragment {
            place: place.clone(),
            group: group.into(),
            metas: lines.metas.into(),
            positions: lines.positions.into(),
            size,
            whole,
            published: None,
            body,
        })
    }
}
