use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How far a copy is, for whoever shows it.
#[derive(Debug, Default)]
pub struct Progress {
    pub(crate) objects: AtomicU64,
    pub(crate) done: AtomicU64,
    pub(crate) moved: AtomicU64,
    pub(crate) saved: AtomicU64,
}

/// The state of a [`Progress`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Objects that have to be brought, as far as is known.
    pub objects: u64,
    /// Objects that were brought.
    pub done: u64,
    /// Bytes that came from the origin.
    pub moved: u64,
    /// Bytes of what was there already or was made here.
    pub saved: u64,
}

impl Progress {
    /// The state now.
    pub fn seen(&self) -> Seen {
        Seen {
            objects: self.objects.load(Relaxed),
            done: self.done.load(Relaxed),
            moved: self.moved.load(Relaxed),
            saved: self.saved.load(Relaxed),
        }
    }
}
