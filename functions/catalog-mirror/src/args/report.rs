//! Reports of commands, and what a copy accepts.

use clap::Args;
use sync::SyncOptions;

/// Report of a command that may publish something.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ReportArgs {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 10 instead of 0 if something was published.
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// Accept a state with a lower serial than the present one.
    #[arg(long)]
    pub(crate) allow_rollback: bool,
    /// Accept a state that does not descend from the present one.
    #[arg(long)]
    pub(crate) allow_diverged: bool,
}

impl AllowArgs {
    /// Returns options for copying from a source.
    pub(crate) fn options(&self, source: String) -> SyncOptions {
        SyncOptions {
            source,
            rollback: self.allow_rollback,
            diverged: self.allow_diverged,
            ..SyncOptions::default()
        }
    }
}
