use std::{
    io::{self, IsTerminal},
    sync::Arc,
    time::Duration,
};

use ::poll::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;

use super::bytes;

/// A line on the terminal that tells how far the work is. Without a terminal it shows nothing.
pub(crate) struct Shown {
    bar: ProgressBar,
    updates: Option<JoinHandle<()>>,
}

/// Starts showing a poll.
pub(crate) fn show(progress: Arc<Progress>, quiet: bool) -> Shown {
    start(quiet, move || {
        let seen = progress.seen();
        format!(
            "{} of {} catalogs done, {} files of {} read",
            seen.done,
            seen.catalogs,
            seen.files,
            bytes(seen.bytes)
        )
    })
}

/// Starts showing a copy.
pub(crate) fn show_copy(progress: Arc<sync::Progress>, quiet: bool) -> Shown {
    start(quiet, move || {
        let seen = progress.seen();
        format!(
            "{} of {} objects done, {} moved, {} saved",
            seen.done,
            seen.objects,
            bytes(seen.moved),
            bytes(seen.saved)
        )
    })
}

fn start(quiet: bool, message: impl Fn() -> String + Send + 'static) -> Shown {
    if quiet || !io::stderr().is_terminal() {
        return Shown {
            bar: ProgressBar::hidden(),
            updates: None,
        };
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {elapsed} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.enable_steady_tick(Duration::from_millis(100));
    let updates = tokio::spawn(update(bar.clone(), message));
    Shown {
        bar,
        updates: Some(updates),
    }
}

async fn update(bar: ProgressBar, message: impl Fn() -> String) {
    loop {
        bar.set_message(message());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

impl Shown {
    /// Clears the line.
    pub(crate) fn finish(self) {
        if let Some(updates) = self.updates {
            updates.abort();
        }
        self.bar.finish_and_clear();
    }
}
