//! Progress of long work, for people at a terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::ProgressBar;
use publish::{PollPhase, PollProgress};
use terminal::{bytes, show_progress};

/// Shows the progress of a poll.
pub(crate) fn show_poll(progress: Arc<PollProgress>, quiet: bool) -> ProgressBar {
    show_progress(quiet, move || {
        let done = now(&progress.done);
        let mut parts = vec![format!(
            "{done} of {} catalogs done",
            now(&progress.catalogs)
        )];
        let asking = progress.in_phase(PollPhase::Asking);
        if asking > 0 {
            parts.push(format!("{asking} asking"));
        }
        let reading = progress.in_phase(PollPhase::Reading);
        if reading > 0 {
            parts.push(format!("{reading} reading{}", read(&progress)));
        }
        let storing = progress.in_phase(PollPhase::Storing);
        if storing > 0 {
            let put = now(&progress.put);
            let objects = now(&progress.objects);
            parts.push(format!("{storing} storing ({put} of {objects} packages)"));
        }
        parts.join(", ")
    })
}

/// Returns how much of the sources was read: of layers with the total, which is known for
/// registries.
fn read(progress: &PollProgress) -> String {
    let total = now(&progress.pull.total);
    if total > 0 {
        let received = now(&progress.pull.received);
        return format!(" ({} of {})", bytes(received), bytes(total));
    }
    let files = now(&progress.files);
    format!(" ({files} files of {})", bytes(now(&progress.bytes)))
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
