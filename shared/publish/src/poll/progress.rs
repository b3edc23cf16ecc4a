use std::sync::atomic::{AtomicU64, Ordering};

/// Progress of the polls of a [`crate::Mirror`], for a display.
#[derive(Debug, Default)]
pub struct PollProgress {
    catalogs: AtomicU64,
    done: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
}

/// State of a [`PollProgress`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgressCounts {
    /// Number of polls that were started.
    pub catalogs: u64,
    /// Number of polls that have ended, failed ones included.
    pub done: u64,
    /// Number of FBC files that were read.
    pub files: u64,
    /// Total size of these files, in bytes.
    pub bytes: u64,
}

impl PollProgress {
    /// Returns the counts of this moment. They may belong to slightly different moments.
    pub fn counts(&self) -> ProgressCounts {
        ProgressCounts {
            catalogs: self.catalogs.load(Ordering::Relaxed),
            done: self.done.load(Ordering::Relaxed),
            files: self.files.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn start(&self) {
        self.catalogs.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn file(&self, bytes: u64) {
        self.files.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
