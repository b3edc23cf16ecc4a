use std::io::{self, Read};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::{collections::BTreeMap, mem, panic, sync::Arc};

use fbc::{ChunkBuffers, Chunks, FbcError, FbcErrorKind, IndexIgnore};
use model::{IndexedMeta, ShardRef, text::chain};
use parking_lot::Mutex;
use work::Budget;

use crate::assemble::{assemble, is_ignore_file};
use crate::context::{ChunkJob, RenderContext};
use crate::{RenderError, RenderSettings, Rendering, Shard, StoredShards, error::shown};

/// Takes the files of a catalog, in any order, and renders them on worker threads.
pub struct Renderer {
    context: Arc<RenderContext>,
    jobs: Option<SyncSender<ChunkJob>>,
    workers: Vec<JoinHandle<io::Result<()>>>,
    buffers: ChunkBuffers,
    /// Patterns of the ignore files so far, or the error of one of them.
    ignore: Result<IndexIgnore, RenderError>,
    links: BTreeMap<String, String>,
    /// Packages that are taken whole from the store.
    shards: Vec<Shard>,
}

impl Renderer {
    /// Starts the workers. Shards that `stored` has are neither compressed nor kept.
    pub fn start(mut settings: RenderSettings, stored: Arc<dyn StoredShards>) -> Self {
        let workers = settings.workers.max(1);
        // No document can take more than all the memory there is.
        settings.limits.document.memory_bytes = settings.budget.memory().capacity();
        let context = Arc::new(RenderContext::new(settings, stored));
        // One chunk waits while the next is being read: more would only cost memory.
        let (jobs, queue) = sync_channel(1);
        let queue = Arc::new(Mutex::new(queue));
        let workers = (0..workers).map(|_| {
            let context = context.clone();
            let queue = queue.clone();
            thread::spawn(move || context.work(&queue))
        });
        Self {
            workers: workers.collect(),
            context,
            jobs: Some(jobs),
            buffers: ChunkBuffers::default(),
            ignore: Ok(IndexIgnore::default()),
            links: BTreeMap::new(),
            shards: Vec::new(),
        }
    }

    /// Returns the budget of the work on the catalog.
    pub fn budget(&self) -> &Budget {
        &self.context.settings.budget
    }

    /// Takes one file, its path relative to the FBC root with `/` between its parts.
    ///
    /// A file that is not FBC is not an error here: [`Self::finish`] reports it, unless an ignore
    /// file excludes it.
    ///
    /// # Errors
    /// The error of reading `content`, and [`RenderError::Stopped`].
    pub fn file(&mut self, path: &str, content: &mut dyn Read) -> io::Result<()> {
        match self.context.check_budget() {
            Ok(()) if !self.context.usage.is_exceeded() => {}
            Err(error @ RenderError::Stopped) => return Err(io::Error::other(error)),
            // A limit is exceeded, as the end of the rendering says.
            _ => return Ok(()),
        }
        if is_ignore_file(path) {
            return self.ignore_file(path, content);
        }
        self.chunks(&Arc::from(path), content)
    }

    fn ignore_file(&mut self, path: &str, content: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        let limits = &self.context.settings.limits;
        let most = limits.ignore_bytes.saturating_add(1);
        content.take(most).read_to_end(&mut bytes)?;
        self.context.usage.ignore_bytes(path, bytes.len() as u64);
        if let Ok(ignore) = &mut self.ignore
            && let Err(error) = ignore.add(path, &bytes, limits.ignore_patterns)
        {
            self.ignore = Err(match &error.kind {
                FbcErrorKind::Limit { name, limit } => {
                    RenderError::limit(name, *limit as u64, path)
                }
                _ => RenderError::of_file(path.to_owned(), shown(&chain(&error))),
            });
        }
        Ok(())
    }

    fn chunks(&self, path: &Arc<str>, content: &mut dyn Read) -> io::Result<()> {
        let settings = &self.context.settings;
        let chunks = Chunks::new(content, settings.limits.document, settings.chunk_bytes);
        let chunks = chunks
            .within(settings.budget.clone())
            .reusing(&self.buffers);
        let mut chunks = chunks.enumerate().peekable();
        while let Some((part, chunk)) = chunks.next() {
            match chunk {
                Ok(chunk) => {
                    let sole = part == 0 && chunks.peek().is_none();
                    // Taken after reading: what waits for a slow registry must not hold memory that
                    // others need.
                    let bytes = settings.limits.document.memory_of(chunk.size());
                    let memory = settings.budget.take(bytes);
                    let memory = memory.ok_or_else(|| io::Error::other(RenderError::Stopped))?;
                    self.send(ChunkJob {
                        path: path.clone(),
                        part,
                        sole,
                        chunk,
                        _memory: memory,
                    })?;
                }
                // The caller's, and no problem of the file.
                Err(FbcError {
                    kind: FbcErrorKind::Read(error),
                    ..
                }) => return Err(error),
                Err(error) => self.context.fail(path, part, &error),
            }
        }
        Ok(())
    }

    /// Takes a link: the file `path` has the same content as the file `target`.
    pub fn link(&mut self, path: &str, target: &str) {
        self.links.insert(path.to_owned(), target.to_owned());
    }

    /// Takes a whole Package that the store has, with the positions of its Metas. It is not
    /// decompressed here. A Package with files as well has only the lines of the files.
    pub fn stored_shard(&mut self, shard: &ShardRef, metas: Vec<IndexedMeta>) {
        self.context
            .usage
            .lines(&shard.name, &metas, shard.lines.size);
        self.shards.push(Shard {
            metas,
            ..Shard::of_ref(shard)
        });
    }

    /// Returns true if the `.indexignore` files so far exclude a path. Also if that cannot be told:
    /// [`Self::finish`] then says why.
    pub fn excludes(&self, path: &str) -> bool {
        if self.context.usage.is_exceeded() || self.context.settings.budget.is_stopped() {
            return true;
        }
        let Ok(ignore) = &self.ignore else {
            return true;
        };
        ignore
            .excludes(path, &self.context.settings.budget)
            .unwrap_or(true)
    }

    fn send(&self, job: ChunkJob) -> io::Result<()> {
        self.jobs
            .as_ref()
            .ok_or_else(stopped)?
            .send(job)
            .map_err(|_| stopped())
    }

    /// Waits for the workers and puts their results together.
    ///
    /// # Errors
    /// [`RenderError::Limit`], [`RenderError::Invalid`] with every problem of every file that is
    /// not ignored, and the storage errors.
    pub fn finish(mut self) -> Result<Rendering, RenderError> {
        for ended in self.stop() {
            let ended = ended.unwrap_or_else(|panic| panic::resume_unwind(panic));
            ended.map_err(RenderError::Scratch)?;
        }
        self.context.usage.check_limits()?;
        self.context.check_budget()?;
        let files = mem::take(&mut *self.context.files.lock());
        let links = mem::take(&mut self.links);
        let stored = mem::take(&mut self.shards);
        let ignore = mem::replace(&mut self.ignore, Ok(IndexIgnore::default()))?;
        assemble(files, &ignore, links, stored, self.context.clone())
    }

    /// Closes the queue, waits for the workers, and frees the memory of chunks.
    fn stop(&mut self) -> Vec<thread::Result<io::Result<()>>> {
        self.jobs = None;
        self.buffers = ChunkBuffers::default();
        self.workers.drain(..).map(JoinHandle::join).collect()
    }
}

/// Waits for the workers also when it is abandoned, because they hold memory.
impl Drop for Renderer {
    fn drop(&mut self) {
        drop(self.stop());
    }
}

fn stopped() -> io::Error {
    io::Error::other("the render workers have stopped")
}
