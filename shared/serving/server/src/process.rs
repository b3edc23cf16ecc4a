use std::os::unix::process::CommandExt;
use std::process::{self, Command};
use std::sync::{Arc, OnceLock};
use std::{env, io};

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

/// Signal that asks a program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGINT, which a terminal sends for Ctrl-C.
    Interrupt,
    /// SIGTERM, which a supervisor sends.
    Terminate,
}

impl StopSignal {
    /// Returns the exit code by which shells tell that the signal has ended a command.
    const fn exit_code(self) -> i32 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// End of a program by a signal.
#[derive(Debug, Clone)]
pub struct Stop {
    /// Token that the first signal cancels.
    pub token: CancellationToken,
    received: Arc<OnceLock<StopSignal>>,
}

impl Stop {
    /// Returns the signal, once one was received.
    pub fn signal(&self) -> Option<StopSignal> {
        self.received.get().copied()
    }
}

/// Handles SIGTERM and SIGINT: the first one cancels a token, and a second one ends the program at
/// once.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn stop_on_signals() -> io::Result<Stop> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = Stop {
        token: CancellationToken::new(),
        received: Arc::default(),
    };
    let stopped = stop.clone();
    tokio::spawn(async move {
        loop {
            let received = tokio::select! {
                _ = terminate.recv() => StopSignal::Terminate,
                _ = interrupt.recv() => StopSignal::Interrupt,
            };
            if stopped.received.set(received).is_err() {
                // The user does not want to wait for running answers.
                process::exit(received.exit_code());
            }
            tracing::info!("stopping after a signal");
            stopped.token.cancel();
        }
    });
    Ok(stop)
}
