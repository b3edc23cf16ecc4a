//! Progress of long work, for people at a terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::ProgressBar;
use publish::PollProgress;
use terminal::{bytes, show_progress};

/// Shows the progress of a poll.
pub(crate) fn show_poll(progress: Arc<PollProgress>, quiet: bool) -> ProgressBar {
    show_progress(quiet, move || {
        let (done, catalogs) = (now(&progress.done), now(&progress.catalogs));
        let (files, read) = (now(&progress.files), bytes(now(&progress.bytes)));
        format!("{done} of {catalogs} catalogs done, {files} files of {read} read")
    })
}

/// Shows the progress of a copy.
pub(crate) fn show_copy(progress: Arc<sync::CopyProgress>, quiet: bool) -> ProgressBar {
    show_progress(quiet, move || {
        let (done, objects) = (now(&progress.done), now(&progress.objects));
        let (moved, saved) = (bytes(now(&progress.moved)), bytes(now(&progress.saved)));
        format!("{done} of {objects} objects done, {moved} moved, {saved} saved")
    })
}

fn now(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
