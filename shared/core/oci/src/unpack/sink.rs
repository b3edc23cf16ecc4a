//! The interface to the consumer of a catalog's files.

use std::io::{self, Read};

use crate::{LinkError, UnpackError, shown};

/// Takes each file of a catalog exactly once.
///
/// All calls come from blocking threads, one at a time, in any order of the files. Paths are
/// relative to the FBC root and separated by `/`.
pub trait FileSink: Send {
    /// Takes one file of `size` bytes. The content need not be read to its end.
    ///
    /// # Errors
    /// Any error ends the reading of the image.
    fn file(&mut self, path: &str, size: u64, content: &mut dyn Read) -> io::Result<()>;

    /// Takes a hard link or symlink `path` to the file `target` inside the root. Called after all
    /// files.
    ///
    /// # Errors
    /// Any error ends the reading of the image.
    fn link(&mut self, path: &str, target: &str) -> io::Result<()>;

    /// Returns true if a broken link may be skipped, as `.indexignore` can allow. Called after all
    /// files, only for links that cannot be resolved.
    fn excludes(&self, _path: &str) -> bool {
        false
    }
}

/// Passes a file of exactly `size` bytes to `sink`. `broken` reports a content that fails or ends
/// early.
///
/// # Errors
/// That of the content, else that of the sink.
pub fn pass_file<E: From<UnpackError>>(
    sink: &mut impl FileSink,
    path: &str,
    size: u64,
    content: &mut dyn Read,
    broken: impl FnOnce(io::Error) -> E,
) -> Result<(), E> {
    let mut content = ContentReader {
        inner: content,
        missing: size,
        failure: None,
    };
    let outcome = sink.file(path, size, &mut content);
    // First the content's own error: the sink's error would only repeat it in other words.
    match content.failure {
        Some(error) => Err(broken(error)),
        None => outcome.map_err(|error| UnpackError::Sink(error).into()),
    }
}

/// Passes a link to `sink`, unless it is broken and `sink` excludes it.
///
/// # Errors
/// A broken link, and the error of the sink.
pub fn pass_link(
    sink: &mut impl FileSink,
    path: &str,
    target: Result<String, LinkError>,
) -> Result<(), UnpackError> {
    match target {
        Ok(target) => sink.link(path, &target).map_err(UnpackError::Sink),
        Err(_) if sink.excludes(path) => Ok(()),
        Err(source) => Err(UnpackError::Link {
            path: shown(path.as_bytes()),
            source,
        }),
    }
}

/// Reads a file's content for a sink, and keeps the content's own error apart from the sink's
/// errors.
///
/// A content that ends early is an error too. Half a file must not pass for a whole one.
struct ContentReader<'a> {
    inner: &'a mut dyn Read,
    missing: u64,
    failure: Option<io::Error>,
}

impl ContentReader<'_> {
    fn fail(&mut self, error: io::Error) -> io::Error {
        let copy = io::Error::new(error.kind(), "the content cannot be read to its end");
        self.failure.get_or_insert(error);
        copy
    }
}

impl Read for ContentReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(0) if self.missing > 0 && !buffer.is_empty() => {
                let missing = format!("{} bytes are missing", self.missing);
                Err(self.fail(io::Error::new(io::ErrorKind::UnexpectedEof, missing)))
            }
            Ok(count) => {
                self.missing = self.missing.saturating_sub(count as u64);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(self.fail(error)),
        }
    }
}
