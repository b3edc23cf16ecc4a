//! Manual pages of the commands, which the packages of a release install.

use std::io;
use std::path::Path;

use clap::Command;

/// Writes a page for the program and one for each command into an existing folder.
pub(crate) fn write_pages(command_line: Command, folder: &Path) -> io::Result<()> {
    // Without commit and compiler, so that all builds of a release have the same pages.
    let command = command_line.version(env!("CARGO_PKG_VERSION"));
    clap_mangen::generate_to(command, folder)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::CommandFactory;

    use super::*;
    use crate::commands::Cli;

    #[test]
    fn manual_has_page_for_each_visible_command() {
        let folder = tempfile::tempdir().unwrap();
        write_pages(Cli::command(), folder.path()).unwrap();
        let visible: Vec<String> = Cli::command()
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| format!("catalog-mirror-{}.1", command.get_name()))
            .collect();
        assert!(visible.len() > 20, "{visible:?}");
        for name in visible {
            let page = fs::read_to_string(folder.path().join(&name)).expect(&name);
            assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
        }
        assert!(!folder.path().join("catalog-mirror-man.1").exists());
    }

    #[test]
    fn manual_page_has_version_without_commit() {
        let folder = tempfile::tempdir().unwrap();
        write_pages(Cli::command(), folder.path()).unwrap();
        let page = fs::read_to_string(folder.path().join("catalog-mirror.1")).unwrap();
        assert!(page.contains(concat!("v", env!("CARGO_PKG_VERSION"))));
        assert!(!page.contains("commit"), "{page}");
    }
}
