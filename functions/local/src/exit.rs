use std::process::ExitCode;

/// What the exit code tells. 2 is a mistake on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: all is well; after a poll, nothing has changed for readers.
    Fine,
    /// 1: something failed or was refused, or is damaged.
    Failed,
    /// 10: a poll published something, or what was compared differs.
    Changed,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::Failed => 1,
            Exit::Changed => 10,
        })
    }
}
