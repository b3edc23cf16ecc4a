//! Memory of processes that run for long.

use std::{env, io, os::unix::process::CommandExt, process::Command};

/// Allocator of static programs, which are those of the container image, in place of that of musl. Measured on 132 MB of JSON
/// lines, as the CPU time of a cold publication, its peak of memory, the CPU time of a whole catalog without a coding, and the
/// memory after a load of requests: musl 3.7 s, 55 MB, 145 ms, 59 MB; jemalloc 3.2 s, 78 MB, 64 ms, 58 MB; mimalloc 3.4 s,
/// 210 MB, 62 ms, 605 MB.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Variable from which glibc reads the number of its arenas, at the start of a process only.
const VARIABLE: &str = "MALLOC_ARENA_MAX";
/// Number of arenas. With glibc's default of eight for each core, each thread leaves freed memory behind in another one: after
/// 15 minutes of requests and publications a server took 240 MB, and takes 63 MB with two.
const ARENAS: &str = "2";

/// Variable from which glibc reads the size of allocations that get pages of their own.
const PAGES_VARIABLE: &str = "MALLOC_MMAP_THRESHOLD_";
/// Size in bytes, 256 kB. glibc's default grows to 32 MB with what a process frees, and large buffers then stay in its heap:
/// after 16 clients of the registry API had asked for the largest bundles, a server kept 129 MB, and keeps 62 MB with this.
const PAGES: &str = "262144";

/// Replaces this process by one of the same program, process ID and arguments that has few arenas and gives large
/// buffers back. Does nothing if the environment says how many arenas there are, or if glibc is not the C library.
///
/// To be called before threads and files exist. Returns only if the process goes on as it is.
///
/// # Errors
/// If the program cannot be started again, for example because its file was removed.
pub(crate) fn limit() -> io::Result<()> {
    if !cfg!(target_env = "gnu") || env::var_os(VARIABLE).is_some() || env::var_os("GLIBC_TUNABLES").is_some() {
        return Ok(());
    }
    let mut arguments = env::args_os();
    let mut again = Command::new(env::current_exe()?);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    if env::var_os(PAGES_VARIABLE).is_none() {
        again.env(PAGES_VARIABLE, PAGES);
    }
    Err(again.args(arguments).env(VARIABLE, ARENAS).exec())
}
