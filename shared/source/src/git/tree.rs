//! From the names that git lists to the files of a catalog.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write, sink};
use std::sync::Arc;

use oci::{
    BlobRef, Budget, FileSink, ImageLimits, LayerError, LayerScan, LimitExceeded, OverlayState, Root, RootState,
    TreeEntry, UnpackError, shown,
};

use super::GitFault;
use super::program::GitProgram;
use crate::error::Error;
use crate::stream::blocking;

/// Start of a pointer file of Git LFS.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1";

/// Length of a line of `git ls-tree` before the path, at most.
const COLUMN_BYTES: u64 = 128;

/// The reason for which the reading of a commit stopped.
#[derive(Debug, thiserror::Error)]
enum ReadStopped {
    #[error(transparent)]
    Fault(#[from] GitFault),
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// A pipe from or to git that ended.
    #[error(transparent)]
    Pipe(#[from] io::Error),
}

impl GitProgram<'_> {
    /// Passes the files below the folder at a fetched commit to `sink`. Two processes list the names and print the files.
    pub(super) async fn read<S: FileSink + 'static>(&self, commit: &str, pack: &BlobRef, sink: S) -> Result<S, Error> {
        let limits = self.settings.limits.clone();
        let root = Root::plain(self.location.folder().to_vec());
        let (tree, path) = (format!("{commit}^{{commit}}"), root.path());
        let mut arguments = vec!["ls-tree", "-r", "-t", "-z", "-l", "--full-tree", &tree];
        arguments.extend([path.as_str()].into_iter().filter(|path| !path.is_empty()));
        let mut names = self.start(&arguments, 0)?;
        let mut files = self.start(&["cat-file", "--batch"], 0)?;
        let gone = || self.location.error(GitFault::Failed("a pipe is closed".to_owned()));
        let list = names
            .child
            .stdout
            .take()
            .and_then(|pipe| pipe.into_owned_fd().ok())
            .ok_or_else(gone)?;
        let ask = files
            .child
            .stdin
            .take()
            .and_then(|pipe| pipe.into_owned_fd().ok())
            .ok_or_else(gone)?;
        let content = files
            .child
            .stdout
            .take()
            .and_then(|pipe| pipe.into_owned_fd().ok())
            .ok_or_else(gone)?;
        let mut walk = TreeWalk {
            list: BufReader::new(list.into()),
            ask: ask.into(),
            content: BufReader::new(content.into()),
            pack: pack.clone(),
            passed: 0,
            scan: LayerScan {
                depth: 0,
                layer: pack.clone(),
                root,
                budget: Arc::new(Budget::new(&limits)),
            },
            limits,
            state: OverlayState::new(sink),
        };
        let walked = blocking(move || {
            let walked = walk.run();
            Ok(walked.and_then(|()| walk.finish()))
        });
        match walked.await? {
            Ok(sink) => {
                names.end().await.map_err(|fault| self.location.error(fault))?;
                Ok(sink)
            }
            Err(stopped) => {
                if stopped.is_of_pipe() {
                    // The process at the other end has said why.
                    files.end().await.map_err(|fault| self.location.error(fault))?;
                    names.end().await.map_err(|fault| self.location.error(fault))?;
                }
                Err(self.stopped(stopped))
            }
        }
    }

    fn stopped(&self, stopped: ReadStopped) -> Error {
        match stopped {
            ReadStopped::Fault(fault) => self.location.error(fault),
            ReadStopped::Pipe(error) => self.location.error(GitFault::Failed(error.to_string())),
            // The pack is known by the source, not by its digest.
            ReadStopped::Unpack(UnpackError::Layer { source, .. }) => self.location.error(source.into()),
            ReadStopped::Unpack(UnpackError::Limit(limit)) | ReadStopped::Limit(limit) => Error::Limit(LimitExceeded {
                place: format!("{}, {}", self.location, limit.place),
                ..limit
            }),
            ReadStopped::Unpack(other) => other.into(),
        }
    }
}

impl ReadStopped {
    fn is_of_pipe(&self) -> bool {
        let Self::Unpack(UnpackError::Layer { source, .. }) = self else {
            return matches!(self, Self::Pipe(_));
        };
        matches!(source, LayerError::Content { .. })
    }
}

/// A walk over the names of all trees of a catalog, in git's order.
struct TreeWalk<S> {
    /// Output of `git ls-tree`.
    list: BufReader<File>,
    /// Input of `git cat-file`, and its output.
    ask: File,
    content: BufReader<File>,
    pack: BlobRef,
    limits: ImageLimits,
    /// Bytes of all names and files so far. One object can be used many times.
    passed: u64,
    scan: LayerScan,
    state: OverlayState<S>,
}

impl<S: FileSink> TreeWalk<S> {
    fn run(&mut self) -> Result<(), ReadStopped> {
        let place = || "its files".to_owned();
        let mut line = Vec::new();
        loop {
            line.clear();
            let most = self.limits.path_bytes.saturating_add(COLUMN_BYTES);
            (&mut self.list).take(most).read_until(0, &mut line)?;
            if line.is_empty() {
                return Ok(());
            }
            self.scan.budget.count_entry(place)?;
            self.count(line.len() as u64)?;
            let is_whole = line.pop_if(|last| *last == 0).is_some();
            let tab = line.iter().position(|byte| *byte == b'\t');
            let (columns, path) = line.split_at(tab.ok_or_else(|| io::Error::from(ErrorKind::UnexpectedEof))?);
            let path = &path[1..];
            self.scan.budget.check_path(path, place)?;
            if !is_whole {
                return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
            }
            let columns = String::from_utf8_lossy(columns).into_owned();
            let path = path.to_vec();
            if !path.split(|byte| *byte == b'/').all(is_name) {
                return Err(GitFault::Name(shown(&path)).into());
            }
            self.entry(&columns, path)?;
        }
    }

    fn entry(&mut self, columns: &str, path: Vec<u8>) -> Result<(), ReadStopped> {
        let mut columns = columns.split_ascii_whitespace();
        let (mode, kind, object) = (columns.next(), columns.next(), columns.next().unwrap_or_default());
        match (mode, kind) {
            (_, Some("tree")) => Ok(self.scan.apply(&mut self.state, path, TreeEntry::Folder)?),
            (_, Some("commit")) => Err(GitFault::Submodule(shown(&path)).into()),
            (Some("120000"), Some("blob")) => self.file(object, path, true),
            (_, Some("blob")) => self.file(object, path, false),
            _ => Err(io::Error::from(ErrorKind::InvalidData).into()),
        }
    }

    fn file(&mut self, object: &str, path: Vec<u8>, is_link: bool) -> Result<(), ReadStopped> {
        let size = self.ask(object)?;
        self.count(size)?;
        let start_bytes = if is_link {
            size.min(self.limits.path_bytes.saturating_add(1))
        } else {
            size.min(LFS_POINTER.len() as u64)
        };
        let mut start = Vec::new();
        (&mut self.content).take(start_bytes).read_to_end(&mut start)?;
        let mut rest = (&mut self.content).take(size - start.len() as u64);
        if is_link {
            self.scan.apply(&mut self.state, path, TreeEntry::Symlink(start))?;
        } else if start == LFS_POINTER {
            return Err(GitFault::Lfs(shown(&path)).into());
        } else {
            let content = &mut start.as_slice().chain(&mut rest);
            self.scan
                .apply(&mut self.state, path, TreeEntry::File { size, content })?;
        }
        io::copy(&mut rest, &mut sink())?;
        // The line ends after the content.
        Ok(self.content.read_exact(&mut [0])?)
    }

    /// Asks for a file. Returns its size; its content follows.
    fn ask(&mut self, object: &str) -> Result<u64, ReadStopped> {
        writeln!(self.ask, "{object}")?;
        let mut head = String::new();
        (&mut self.content).take(COLUMN_BYTES).read_line(&mut head)?;
        let size = head
            .trim_end()
            .strip_prefix(object)
            .and_then(|rest| rest.strip_prefix(" blob "));
        let size = size.and_then(|size| size.parse().ok());
        Ok(size.ok_or_else(|| io::Error::other(format!("no file but {}", shown(head.as_bytes()))))?)
    }

    fn count(&mut self, bytes: u64) -> Result<(), LimitExceeded> {
        let place = || "its files".to_owned();
        self.scan.budget.count_bytes(bytes, place)?;
        self.passed += bytes;
        if self.passed > self.limits.decompressed_of(self.pack.size) {
            return Err(LimitExceeded {
                name: "ratio",
                limit: self.limits.ratio,
                place: place(),
            });
        }
        Ok(())
    }

    fn finish(self) -> Result<S, ReadStopped> {
        let path = self.scan.root.path();
        match self.state.root() {
            RootState::Missing if !path.is_empty() => Err(GitFault::NoFolder(shown(path.as_bytes())).into()),
            RootState::NotDirectory => Err(GitFault::NotFolder(shown(path.as_bytes())).into()),
            RootState::Missing | RootState::Directory => Ok(self.state.finish(&self.scan.root, &self.limits)?),
        }
    }
}

/// Returns true for a name that a checkout can have. Git itself refuses the others.
fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.eq_ignore_ascii_case(b".git")
}
