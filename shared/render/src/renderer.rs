use std::{
    collections::BTreeMap,
    io::{self, Read},
    mem, panic,
    sync::{
        Arc, Mutex,
        mpsc::{SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use fbc::{Chunks, IndexIgnore};
use text::chain;

use crate::{
    Published, RenderError, Rendering, Settings,
    assemble::Assembly,
    count::Count,
    error::shown,
    scratch::Scratch,
    worker::{Job, Results, Shop},
};

/// Takes the files of a catalog, in any order, and renders them on worker threads.
pub struct Renderer {
    shop: Arc<Shop>,
    jobs: Option<SyncSender<Job>>,
    workers: Vec<JoinHandle<io::Result<()>>>,
    ignore_files: BTreeMap<String, Vec<u8>>,
    links: BTreeMap<String, String>,
}

impl Renderer {
    /// Starts the workers. `published` tells which Shards need not be kept.
    pub fn start(settings: Settings, published: Arc<dyn Published>) -> Self {
        let scratch = Scratch::new(settings.memory_bytes, settings.scratch_dir.clone());
        let workers = settings.workers.max(1);
        let count = Count::new(&settings.limits);
        let shop = Arc::new(Shop {
            settings,
            published,
            scratch,
            count,
            results: Mutex::default(),
        });
        // One chunk waits while the next is being read: more would only cost memory.
        let (jobs, queue) = sync_channel(1);
        let queue = Arc::new(Mutex::new(queue));
        let workers = (0..workers).map(|_| spawn(shop.clone(), queue.clone())).collect();
        Self {
            shop,
            jobs: Some(jobs),
            workers,
            ignore_files: BTreeMap::new(),
            links: BTreeMap::new(),
        }
    }

    /// Takes one file, its path relative to the FBC root with `/` between its parts.
    ///
    /// A file that is no FBC is no error here: [`Self::finish`] reports it unless it turns out to be ignored.
    ///
    /// # Errors
    /// What reading `content` ran into.
    pub fn file(&mut self, path: &str, content: &mut dyn Read) -> io::Result<()> {
        if self.shop.count.is_exceeded() {
            return Ok(());
        }
        if is_ignore_file(path) {
            return self.ignore_file(path, content);
        }
        self.chunks(&Arc::from(path), content)
    }

    fn ignore_file(&mut self, path: &str, content: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        let most = self.shop.settings.limits.ignore_bytes.saturating_add(1);
        content.take(most).read_to_end(&mut bytes)?;
        self.shop.count.ignore_bytes(path, bytes.len() as u64);
        self.ignore_files.insert(path.to_owned(), bytes);
        Ok(())
    }

    fn chunks(&self, path: &Arc<str>, content: &mut dyn Read) -> io::Result<()> {
        let settings = &self.shop.settings;
        let mut source = Source { content, error: None };
        let mut chunks = Chunks::new(&mut source, settings.limits.document, settings.chunk_bytes)
            .enumerate()
            .peekable();
        while let Some((part, chunk)) = chunks.next() {
            match chunk {
                Ok(chunk) => {
                    let sole = part == 0 && chunks.peek().is_none();
                    self.send(Job {
                        path: path.clone(),
                        part,
                        sole,
                        chunk,
                    })?;
                }
                Err(error) => self.shop.fail(path, part, &error),
            }
        }
        drop(chunks);
        source.error.map_or(Ok(()), Err)
    }

    /// Takes a link: the file `path` has the same content as the file `target`.
    pub fn link(&mut self, path: &str, target: &str) {
        self.links.insert(path.to_owned(), target.to_owned());
    }

    /// Whether the `.indexignore` files that have come so far exclude a path.
    pub fn excludes(&self, path: &str) -> bool {
        IndexIgnore::new(self.ignore_files.clone()).is_ok_and(|ignore| ignore.excludes(path))
    }

    fn send(&self, job: Job) -> io::Result<()> {
        let stopped = || io::Error::other("the render workers have stopped");
        self.jobs.as_ref().ok_or_else(stopped)?.send(job).map_err(|_| stopped())
    }

    /// Waits for the workers and puts their results together.
    ///
    /// # Errors
    /// [`RenderError::Limit`], [`RenderError::Invalid`] with every problem of every file that is not ignored, and the
    /// storage errors.
    pub fn finish(mut self) -> Result<Rendering, RenderError> {
        self.stop().map_err(RenderError::Scratch)?;
        let Results {
            fragments,
            failures,
            scratch_error,
        } = mem::take(&mut *self.shop.results());
        if let Some(error) = scratch_error {
            return Err(RenderError::Scratch(error));
        }
        if let Some(limit) = self.shop.count.exceeded() {
            return Err(RenderError::Limit(limit));
        }
        let ignore = self.ignore()?;
        let assembly = Assembly {
            fragments,
            failures,
            ignore,
            links: mem::take(&mut self.links),
        };
        assembly.finish(self.shop.clone())
    }

    fn ignore(&mut self) -> Result<IndexIgnore, RenderError> {
        IndexIgnore::new(mem::take(&mut self.ignore_files)).map_err(|error| RenderError::Invalid {
            problems: vec![crate::Problem {
                path: IndexIgnore::FILE_NAME.to_owned(),
                reason: shown(&chain(&error)),
            }],
        })
    }

    fn stop(&mut self) -> io::Result<()> {
        self.jobs = None;
        for worker in self.workers.drain(..) {
            worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic))?;
        }
        Ok(())
    }
}

/// Abandoned, it still waits for its workers: they hold memory.
impl Drop for Renderer {
    fn drop(&mut self) {
        self.jobs = None;
        for worker in self.workers.drain(..) {
            drop(worker.join());
        }
    }
}

/// Keeps the error of reading a file, which is the caller's, apart from what is wrong with the file.
struct Source<'a> {
    content: &'a mut dyn Read,
    error: Option<io::Error>,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.content.read(buffer).map_err(|error| {
            let kind = error.kind();
            self.error = Some(error);
            kind.into()
        })
    }
}

fn spawn(shop: Arc<Shop>, queue: Arc<Mutex<std::sync::mpsc::Receiver<Job>>>) -> JoinHandle<io::Result<()>> {
    thread::spawn(move || shop.work(&queue))
}

pub(crate) fn is_ignore_file(path: &str) -> bool {
    path.rsplit('/').next() == Some(IndexIgnore::FILE_NAME)
}
