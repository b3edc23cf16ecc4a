use std::{
    io,
    sync::{Arc, Mutex, PoisonError, mpsc::Receiver},
};

use layout::Sha256;
use text::chain;
use zstd::bulk::Compressor;

use crate::{
    Published, Settings,
    count::Count,
    error::shown,
    fragment::{Fragment, FragmentBody, Groups, Lines},
    scratch::Scratch,
};

/// One chunk of one file, to be rendered anywhere.
pub(crate) struct Job {
    pub(crate) path: Arc<str>,
    pub(crate) part: usize,
    /// Whether the chunk is all of its file.
    pub(crate) sole: bool,
    pub(crate) chunk: fbc::Chunk,
}

/// What the workers share.
pub(crate) struct Shop {
    pub(crate) settings: Settings,
    pub(crate) published: Arc<dyn Published>,
    pub(crate) scratch: Scratch,
    pub(crate) results: Mutex<Results>,
    pub(crate) count: Count,
}

#[derive(Default)]
pub(crate) struct Results {
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) scratch_error: Option<io::Error>,
}

/// A file that is no FBC, unless it is ignored.
pub(crate) struct Failure {
    pub(crate) path: Arc<str>,
    pub(crate) part: usize,
    pub(crate) reason: String,
}

impl Failure {
    /// The same of another file.
    pub(crate) fn at(&self, path: &Arc<str>) -> Self {
        Self {
            path: path.clone(),
            part: self.part,
            reason: self.reason.clone(),
        }
    }
}

impl Shop {
    pub(crate) fn results(&self) -> std::sync::MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what is wrong with a file, which counts as one document.
    pub(crate) fn fail(&self, path: &Arc<str>, part: usize, error: &fbc::Error) {
        self.count.add(path, 1, 0);
        self.results().failures.push(Failure {
            path: path.clone(),
            part,
            reason: shown(&chain(error)),
        });
    }

    /// Renders chunks until there are no more.
    pub(crate) fn work(&self, jobs: &Mutex<Receiver<Job>>) -> io::Result<()> {
        let mut compressor = Compressor::new(self.settings.shard_level)?;
        compressor.include_checksum(true)?;
        while let Some(job) = next(jobs) {
            if self.count.is_exceeded() {
                continue;
            }
            match self.render(&job, &mut compressor) {
                Ok(fragments) => self.results().fragments.extend(fragments),
                Err(Trouble::Chunk(error)) => self.fail(&job.path, job.part, &error),
                Err(Trouble::Scratch(error)) => self.results().scratch_error = Some(error),
            }
        }
        Ok(())
    }

    fn render(&self, job: &Job, compressor: &mut Compressor<'_>) -> Result<Vec<Fragment>, Trouble> {
        let mut groups = Groups::default();
        job.chunk
            .metas(&self.settings.limits.document, &mut |meta| groups.push(&meta))
            .map_err(Trouble::Chunk)?;
        groups.0.values().for_each(|lines| self.count.lines(&job.path, lines));
        let fragments = groups
            .0
            .into_iter()
            .map(|(group, lines)| self.fragment(job, group, lines, compressor));
        fragments.collect::<io::Result<_>>().map_err(Trouble::Scratch)
    }

    fn fragment(
        &self,
        job: &Job,
        group: String,
        lines: Lines,
        compressor: &mut Compressor<'_>,
    ) -> io::Result<Fragment> {
        let body = self.body(job.sole, &lines.bytes, compressor)?;
        Ok(Fragment {
            path: job.path.clone(),
            part: job.part,
            group: group.into(),
            metas: lines.metas.into(),
            size: lines.bytes.len() as u64,
            body,
        })
    }

    fn body(&self, sole: bool, lines: &[u8], compressor: &mut Compressor<'_>) -> io::Result<FragmentBody> {
        if !sole {
            return Ok(FragmentBody::Part(self.hold(lines, compressor)?));
        }
        let sha256 = Sha256::of(lines);
        if self.published.contains(&sha256) {
            return Ok(FragmentBody::Published(sha256));
        }
        Ok(FragmentBody::Whole(sha256, self.hold(lines, compressor)?))
    }

    fn hold(&self, lines: &[u8], compressor: &mut Compressor<'_>) -> io::Result<Arc<crate::scratch::Held>> {
        self.scratch.hold(compressor.compress(lines)?).map(Arc::new)
    }
}

enum Trouble {
    Chunk(fbc::Error),
    Scratch(io::Error),
}

fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}
