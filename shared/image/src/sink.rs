//! Where the files of a catalog go.

use std::io::{self, Read};

/// Takes each file of a catalog exactly once.
///
/// All calls come from blocking threads, one at a time, in whatever order the files stream by.
/// Paths are relative to the FBC root, separated by `/`.
pub trait FileSink: Send {
    /// One file. `content` may be left unread.
    fn file(&mut self, path: &str, size: u64, content: &mut dyn Read) -> io::Result<()>;

    /// `path` has the same content as the file `target`: a hard link or a symlink inside the root.
    /// Called after all files.
    fn link(&mut self, path: &str, target: &str) -> io::Result<()>;

    /// Whether a link that leads nowhere may be passed over, as `.indexignore` can ask for.
    /// Called after all files, only for links that cannot be resolved.
    fn excludes(&self, path: &str) -> bool {
        let _ = path;
        false
    }
}
