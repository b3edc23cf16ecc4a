use std::process::{ExitCode, Termination};

use model::Outcome;

/// The exit code of a command. clap exits with 2 by itself for a wrong command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command did its work. Publishing something is a success like finding nothing new, so
    /// that `catalog-mirror poll && next` runs `next` and a service manager sees no failure.
    Success = 0,
    /// Something failed, was refused or is damaged.
    Failed = 1,
    /// Something was published and `--detailed-exitcode` was given, or `diff` found a difference.
    // Not 2, which terraform takes for this: here 2 is a wrong command line.
    Changed = 10,
    /// Ctrl-C (SIGINT) has stopped the command: 128 and the number of the signal, as shells tell it.
    Interrupted = 130,
    /// SIGTERM has stopped the command.
    Terminated = 143,
}

impl Exit {
    /// Returns the exit code of a check: 1 if it found something.
    pub const fn of_check(is_good: bool) -> Self {
        if is_good { Self::Success } else { Self::Failed }
    }

    /// Returns the exit code for the outcomes of all catalogs. One failure is enough to fail.
    pub fn of(outcomes: impl IntoIterator<Item = Outcome>, detailed: bool) -> Self {
        let mut exit = Self::Success;
        for outcome in outcomes {
            if !outcome.is_success() {
                return Self::Failed;
            }
            if detailed && outcome == Outcome::Published {
                exit = Self::Changed;
            }
        }
        exit
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}
