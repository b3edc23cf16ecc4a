use std::sync::atomic::{AtomicU64, Ordering};

/// How far the turns of a [`crate::Mirror`] are, for whoever shows it.
#[derive(Debug, Default)]
pub struct Progress {
    catalogs: AtomicU64,
    done: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
}

/// The state of a [`Progress`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Turns that were started.
    pub catalogs: u64,
    /// Turns that have ended.
    pub done: u64,
    /// FBC files that were read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Progress {
    /// The state now.
    pub fn seen(&self) -> Seen {
        Seen {
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
