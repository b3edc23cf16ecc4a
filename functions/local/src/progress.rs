//! A line on the terminal that shows the progress of a command. Without a terminal it shows nothing.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use publish::PollProgress;

use crate::output::bytes;

/// Time between two updates of the line.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Shows the progress of a poll.
pub(crate) fn show_poll(progress: Arc<PollProgress>, quiet: bool) -> ProgressBar {
    show(quiet, move || {
        let counts = progress.counts();
        let (done, catalogs, files, read) = (counts.done, counts.catalogs, counts.files, bytes(counts.bytes));
        format!("{done} of {catalogs} catalogs done, {files} files of {read} read")
    })
}

/// Shows the progress of a copy.
pub(crate) fn show_copy(progress: Arc<sync::CopyProgress>, quiet: bool) -> ProgressBar {
    show(quiet, move || {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (done, objects) = (now(&progress.done), now(&progress.objects));
        let (moved, saved) = (bytes(now(&progress.moved)), bytes(now(&progress.saved)));
        format!("{done} of {objects} objects done, {moved} moved, {saved} saved")
    })
}

fn show(quiet: bool, counts: impl Fn() -> String + Clone + Send + Sync + 'static) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {elapsed} {counts}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        style.with_key("counts", move |_: &ProgressState, line: &mut dyn Write| {
            // The line is drawn again soon.
            line.write_str(&counts()).ok();
        }),
    );
    bar.enable_steady_tick(UPDATE_INTERVAL);
    bar
}
