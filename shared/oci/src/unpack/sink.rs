//! The interface to the consumer of a catalog's files.

use std::io::{self, Read};

/// Takes each file of a catalog exactly once.
///
/// All calls come from blocking threads, one at a time, in any order of the files. Paths are relative to the FBC root and
/// separated by `/`.
pub trait FileSink: Send {
    /// Takes one file of `size` bytes. The content need not be read to its end.
    ///
    /// # Errors
    /// Any error ends the reading of the image.
    fn file(&mut self, path: &str, size: u64, content: &mut dyn Read) -> io::Result<()>;

    /// Takes a hard link or symlink `path` to the file `target` inside the root. Called after all files.
    ///
    /// # Errors
    /// Any error ends the reading of the image.
    fn link(&mut self, path: &str, target: &str) -> io::Result<()>;

    /// Returns true if a broken link may be skipped, as `.indexignore` can allow. Called after all files, only for links
    /// that cannot be resolved.
    fn excludes(&self, path: &str) -> bool {
        let _ = path;
        false
    }
}

/// Reads a file's content for a sink, and keeps the content's own error apart from the sink's errors.
///
/// A content that ends early is an error too. Half a file must not pass for a whole one.
pub struct ContentReader<'a> {
    inner: &'a mut dyn Read,
    missing: u64,
    failure: Option<io::Error>,
}

impl<'a> ContentReader<'a> {
    /// Creates a reader that expects exactly `size` bytes from `inner`.
    pub fn new(inner: &'a mut dyn Read, size: u64) -> Self {
        Self {
            inner,
            missing: size,
            failure: None,
        }
    }

    /// Returns the error of the content itself, if there was one.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_reader_keeps_error_of_truncated_content() {
        for (size, expected) in [(4, None), (8, Some("4 bytes are missing"))] {
            let mut content: &[u8] = b"half";
            let mut reader = ContentReader::new(&mut content, size);
            let error = io::copy(&mut reader, &mut io::sink())
                .err()
                .map(|error| error.to_string());
            let failure = reader.take_failure().map(|failure| failure.to_string());
            assert_eq!(failure.as_deref(), expected);
            assert_eq!(
                error.as_deref(),
                expected.map(|_| "the content cannot be read to its end")
            );
        }
    }
}
