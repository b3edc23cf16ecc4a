use std::{
    io::{self, IsTerminal},
    sync::Arc,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use publish::PollProgress;
use tokio::task::JoinHandle;

use crate::output::bytes;

/// Time between two updates of the line.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// A line on the terminal that shows the progress of a command. Without a terminal it shows nothing.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    updates: Option<JoinHandle<()>>,
}

/// Shows the progress of a poll.
pub(crate) fn show_poll(progress: Arc<PollProgress>, quiet: bool) -> ProgressLine {
    start(quiet, move || {
        let counts = progress.counts();
        format!(
            "{} of {} catalogs done, {} files of {} read",
            counts.done,
            counts.catalogs,
            counts.files,
            bytes(counts.bytes)
        )
    })
}

/// Shows the progress of a copy.
pub(crate) fn show_copy(progress: Arc<sync::CopyProgress>, quiet: bool) -> ProgressLine {
    start(quiet, move || {
        let counts = progress.counts();
        format!(
            "{} of {} objects done, {} moved, {} saved",
            counts.done,
            counts.objects,
            bytes(counts.moved),
            bytes(counts.saved)
        )
    })
}

fn start(quiet: bool, message: impl Fn() -> String + Send + 'static) -> ProgressLine {
    if quiet || !io::stderr().is_terminal() {
        return ProgressLine {
            bar: ProgressBar::hidden(),
            updates: None,
        };
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {elapsed} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.enable_steady_tick(UPDATE_INTERVAL);
    let updates = tokio::spawn(update(bar.clone(), message));
    ProgressLine {
        bar,
        updates: Some(updates),
    }
}

async fn update(bar: ProgressBar, message: impl Fn() -> String) {
    loop {
        bar.set_message(message());
        tokio::time::sleep(UPDATE_INTERVAL).await;
    }
}

impl ProgressLine {
    /// Removes the line from the terminal.
    pub(crate) fn finish(self) {
        if let Some(updates) = self.updates {
            updates.abort();
        }
        self.bar.finish_and_clear();
    }
}
