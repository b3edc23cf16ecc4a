//! Progress of long work, for people at a terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::ProgressBar;
use publish::PollProgress;
use terminal::{bytes, show_progress};

/// Shows the progress of a poll.
pub(crate) fn show_poll(progress: Arc<PollProgress>, quiet: bool) -> ProgressBar {
    show_progress(quiet, move || {
        format!(
            "{} of {} catalogs done, {} files of {} read",
            now(&progress.done),
            now(&progress.catalogs),
            now(&progress.files),
            bytes(now(&progress.bytes))
        )
    })
}

/// Shows the progress of a copy.
pub(crate) fn show_copy(progress: Arc<sync::CopyProgress>, quiet: bool) -> ProgressBar {
    show_progress(quiet, move || {
        format!(
            "{} of {} objects done, {} moved, {} saved",
            now(&progress.done),
            now(&progress.objects),
            bytes(now(&progress.moved)),
            bytes(now(&progress.saved))
        )
    })
}

fn now(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
