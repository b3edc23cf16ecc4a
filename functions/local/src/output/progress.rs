use std::{
    io::{self, IsTerminal},
    sync::Arc,
    time::Duration,
};

use ::poll::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;

use super::bytes;

/// A line on the terminal that tells how far a poll is. Without a terminal it shows nothing.
pub(crate) struct Shown {
    bar: ProgressBar,
    updates: Option<JoinHandle<()>>,
}

/// Starts showing.
pub(crate) fn show(progress: Arc<Progress>, quiet: bool) -> Shown {
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
    let updates = tokio::spawn(update(bar.clone(), progress));
    Shown {
        bar,
        updates: Some(updates),
    }
}

async fn update(bar: ProgressBar, progress: Arc<Progress>) {
    loop {
        let seen = progress.seen();
        bar.set_message(format!(
            "{} of {} catalogs done, {} files of {} read",
            seen.done,
            seen.catalogs,
            seen.files,
            bytes(seen.bytes)
        ));
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
