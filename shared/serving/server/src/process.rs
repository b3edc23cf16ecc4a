use std::{env, io, os::unix::process::CommandExt, process::Command};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Variable from which glibc reads the number of its arenas, at the start of a process only.
const VARIABLE: &str = "MALLOC_ARENA_MAX";
/// Number of arenas. With glibc's default of eight for each core, each thread leaves freed memory
/// behind in another one: after 15 minutes of requests and publications a server took 240 MB, and
/// takes 63 MB with two. A single publication of 132 MB of lines takes 67 MB in place of 87.
const ARENAS: &str = "2";

/// Variable from which glibc reads the size of allocations that get pages of their own.
const PAGES_VARIABLE: &str = "MALLOC_MMAP_THRESHOLD_";
/// Size in bytes, 256 kB. glibc's default grows to 32 MB with what a process frees, and large
/// buffers then stay in its heap: after 16 clients of the registry API had asked for the largest
/// bundles, a server kept 129 MB, and keeps 62 MB with this.
const PAGES: &str = "262144";

/// Largest number of blocking threads: enough for two catalogs whose layers are scanned three at a
/// time, and for writes at the same time. With tokio's default of 512 a burst of writes starts a
/// thread each, and each keeps its memory.
const BLOCKING_THREADS: usize = 24;

/// Runs a program on a new runtime to its end.
///
/// # Errors
/// If the runtime cannot be made.
pub fn block_on<T>(program: impl Future<Output = T>) -> io::Result<T> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()?;
    let ended = runtime.block_on(program);
    // Does not wait for blocking threads: one may still be reading an abandoned pull.
    runtime.shutdown_background();
    Ok(ended)
}

/// Replaces this process by one of the same program, process ID and arguments that has few arenas
/// and, if it `runs_on`, gives large buffers back at once: until its end, a publication needs them
/// again and again, and takes a fifth less processor time with them. Does nothing if the
/// environment says how many arenas there are, or if glibc is not the C library.
///
/// To be called before threads and files exist. Returns only if the process goes on as it is.
///
/// # Errors
/// If the program cannot be started again, for example because its file was removed.
pub fn limit_arenas(runs_on: bool) -> io::Result<()> {
    if !cfg!(target_env = "gnu")
        || env::var_os(VARIABLE).is_some()
        || env::var_os("GLIBC_TUNABLES").is_some()
    {
        return Ok(());
    }
    let mut arguments = env::args_os();
    let mut again = Command::new(env::current_exe()?);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    if runs_on && env::var_os(PAGES_VARIABLE).is_none() {
        again.env(PAGES_VARIABLE, PAGES);
    }
    Err(again.args(arguments).env(VARIABLE, ARENAS).exec())
}

/// Returns a token that the first SIGTERM or SIGINT cancels. A second signal ends the program at
/// once.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn stop_on_signals() -> io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let cancel = stop.clone();
    tokio::spawn(async move {
        for first in [true, false] {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            if !first {
                // The user does not want to wait for running answers.
                std::process::exit(1);
            }
            tracing::info!("stopping after a signal");
            cancel.cancel();
        }
    });
    Ok(stop)
}
