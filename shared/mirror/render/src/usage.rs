use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use model::IndexedMeta;
use oci::LimitExceeded;

use crate::{RenderError, RenderLimits, error::shown};

/// Counts documents and bytes of a catalog. Once a limit is exceeded, no more files are taken in.
#[derive(Default)]
pub(crate) struct Usage {
    limits: RenderLimits,
    documents: AtomicU64,
    content_bytes: AtomicU64,
    name_bytes: AtomicU64,
    ignore_bytes: AtomicU64,
    /// First limit that was exceeded.
    exceeded: OnceLock<LimitExceeded>,
}

impl Usage {
    pub(crate) fn new(limits: &RenderLimits) -> Self {
        Self {
            limits: *limits,
            ..Self::default()
        }
    }

    /// Counts lines of a file or of a stored Shard.
    pub(crate) fn lines(&self, place: &str, metas: &[IndexedMeta], bytes: u64) {
        self.add(place, metas.len() as u64, bytes);
        let mut names = 0;
        for meta in metas {
            names += meta.schema.len() + meta.package.len() + meta.name.len();
        }
        let used = add(&self.name_bytes, names as u64);
        self.check("nameBytes", self.limits.name_bytes, used, place);
    }

    /// Counts documents that a file has because it is a link.
    pub(crate) fn add(&self, path: &str, documents: u64, bytes: u64) {
        let all_documents = add(&self.documents, documents);
        self.check("documents", self.limits.documents, all_documents, path);
        let all_bytes = add(&self.content_bytes, bytes);
        self.check("contentBytes", self.limits.content_bytes, all_bytes, path);
    }

    /// Counts bytes of an ignore file.
    pub(crate) fn ignore_bytes(&self, path: &str, bytes: u64) {
        let used = add(&self.ignore_bytes, bytes);
        self.check("ignoreBytes", self.limits.ignore_bytes, used, path);
    }

    /// Checks the number of Packages; `last` is the one that came last.
    pub(crate) fn packages(&self, count: u64, last: &str) {
        self.check("packages", self.limits.packages, count, last);
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded.get().is_some()
    }

    /// Fails if a limit was exceeded, with the first one.
    pub(crate) fn check_limits(&self) -> Result<(), RenderError> {
        let exceeded = self.exceeded.get().cloned();
        exceeded.map_or(Ok(()), |limit| Err(RenderError::Limit(limit)))
    }

    /// Records limit `name` as exceeded at `place` if `used` is above `limit`. Only the first one
    /// is kept.
    fn check(&self, name: &'static str, limit: u64, used: u64, place: &str) {
        if used > limit {
            let place = shown(place);
            self.exceeded
                .get_or_init(|| LimitExceeded { name, limit, place });
        }
    }
}

fn add(counter: &AtomicU64, count: u64) -> u64 {
    counter
        .fetch_add(count, Ordering::Relaxed)
        .saturating_add(count)
}
