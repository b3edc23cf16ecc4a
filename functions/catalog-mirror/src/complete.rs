//! Completions of a shell, which asks the program itself: commands, options, names in the store
//! that the command line names, and files.
//!
//! bash puts what is offered into the command line as it is, so that a name such as `etcd;reboot`
//! would be two commands. A name that is not plain is offered in no shell.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{collections::BTreeSet, env, sync::Arc};

use anyhow::Context;
use clap::{Command, ValueHint};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use inspect::published;
use model::is_plain_name;
use store::{FolderStore, Store};

use crate::args::DEFAULT_STORE;

/// Variable by which the script of a shell asks.
const VARIABLE: &str = "CATALOG_MIRROR_COMPLETE";

const PROGRAM: &str = "catalog-mirror";

/// Answers a shell and exits, if one asks about the command line.
pub(crate) fn answer(command_line: fn() -> Command) {
    CompleteEnv::with_factory(|| with_candidates(command_line()))
        .var(VARIABLE)
        .complete();
}

/// Prints the script that makes a shell ask.
pub(crate) fn print_script(shell: Shell) -> anyhow::Result<()> {
    let shells = Shells::builtins();
    let completer = shells
        .completer(&shell.to_string())
        .with_context(|| format!("{shell} has no script"))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    terminal::print_bytes(&script)
}

/// Returns the command line with candidates for the names of catalogs and packages, and for paths.
fn with_candidates(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "name" | "names" | "what" | "catalog" | "catalogs_now" | "catalogs_then" => {
            arg.add(ArgValueCandidates::new(|| candidates(false)))
        }
        "package" | "packages" => arg.add(ArgValueCandidates::new(|| candidates(true))),
        _ if arg.get_value_hint() != ValueHint::Unknown => {
            arg.add(ArgValueCompleter::new(plain_paths))
        }
        _ => arg,
    });
    command.mut_subcommands(with_candidates)
}

/// Returns the names in the store. A shell shows no errors, so a store that cannot be read has
/// none.
fn candidates(are_packages: bool) -> Vec<CompletionCandidate> {
    let names = server::block_on(names(are_packages))
        .ok()
        .and_then(Result::ok);
    names
        .into_iter()
        .flatten()
        .filter(|name| is_plain_name(name))
        .map(CompletionCandidate::new)
        .collect()
}

/// Returns the paths whose files have plain names. bash completes the others by itself, and quotes
/// them.
fn plain_paths(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut paths = PathCompleter::any().complete(current);
    paths.retain(|path| {
        let name = Path::new(path.get_value()).file_name();
        name.and_then(OsStr::to_str).is_some_and(is_plain_name)
    });
    paths
}

async fn names(are_packages: bool) -> anyhow::Result<BTreeSet<String>> {
    let store: Arc<dyn Store> = Arc::new(FolderStore::open_read_only(store_folder())?);
    if are_packages {
        return Ok(published::package_names(&store).await?);
    }
    let catalogs = publish::catalog_names(&*store).await?;
    Ok(catalogs.iter().map(ToString::to_string).collect())
}

/// Returns the folder that `--store` names on the unfinished command line, else the variable, else
/// the default.
fn store_folder() -> PathBuf {
    let option = env::args().skip_while(|word| word != "--store").nth(1);
    let named = option.or_else(|| env::var("CATALOG_MIRROR_STORE").ok());
    named.map_or_else(|| DEFAULT_STORE.into(), PathBuf::from)
}
