//! A folder of FBC files, as a source for people who write catalogs.

use std::fs::File;
use std::io::{self, Read, Take};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::digest::{Digest, Hasher};
use crate::error::{Error, ImageError};
use crate::layers::{Budget, Tap};
use crate::limits::Limits;
use crate::overlay::LinkError;
use crate::sink::FileSink;

/// The digest of a folder: sha256 over paths and contents in the order of the walk.
pub(crate) fn digest(dir: &Path, limits: &Limits) -> Result<Digest, Error> {
    Walk::new(dir, limits)?.run(&mut Ignore)
}

/// Feeds the folder to `sink`, and refuses it if it is no longer what `expected` was taken from.
pub(crate) fn read<S: FileSink>(dir: &Path, expected: &Digest, limits: &Limits, mut sink: S) -> Result<S, Error> {
    if Walk::new(dir, limits)?.run(&mut sink)? == *expected {
        Ok(sink)
    } else {
        Err(ImageError::Changed(dir.to_owned()).into())
    }
}

/// Reads nothing: hashing alone is wanted, and links that lead nowhere are for `read` to refuse.
struct Ignore;

impl FileSink for Ignore {
    fn file(&mut self, _: &str, _: u64, _: &mut dyn Read) -> io::Result<()> {
        Ok(())
    }

    fn link(&mut self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn excludes(&self, _: &str) -> bool {
        true
    }
}

struct Walk {
    root: PathBuf,
    links: Vec<String>,
    hasher: Hasher,
    budget: Budget,
}

impl Walk {
    fn new(dir: &Path, limits: &Limits) -> Result<Self, Error> {
        let root = dir.canonicalize().map_err(|source| Error::Io {
            path: dir.to_owned(),
            source,
        })?;
        Ok(Self {
            root,
            links: Vec::new(),
            hasher: Hasher::default(),
            budget: Budget::new(limits),
        })
    }

    fn run(mut self, sink: &mut impl FileSink) -> Result<Digest, Error> {
        for entry in WalkDir::new(&self.root).min_depth(1).sort_by_file_name() {
            let entry = entry.map_err(|error| self.failed(error))?;
            self.entry(&entry, sink)?;
        }
        for link in &self.links {
            match self.resolve(link) {
                Ok(target) => sink.link(link, &target).map_err(Error::Sink)?,
                Err(_) if sink.excludes(link) => {}
                Err(source) => {
                    return Err(Error::Link {
                        path: link.clone(),
                        source,
                    });
                }
            }
        }
        Ok(self.hasher.finish())
    }

    fn failed(&self, error: walkdir::Error) -> Error {
        let path = error.path().unwrap_or(&self.root).to_owned();
        Error::Io {
            path,
            source: error.into(),
        }
    }

    fn entry(&mut self, entry: &DirEntry, sink: &mut impl FileSink) -> Result<(), Error> {
        self.budget.entry(|| self.place())?;
        let kind = entry.file_type();
        if kind.is_dir() {
            return Ok(());
        }
        let path = self.relative(entry.path())?;
        self.budget.path(path.as_bytes(), || self.place())?;
        if kind.is_symlink() {
            let target = entry
                .path()
                .read_link()
                .map_err(|source| io_error(entry.path(), source))?;
            self.note(b'l', &path, &Digest::of(target.as_os_str().as_encoded_bytes()));
            self.links.push(path);
            return Ok(());
        }
        if !kind.is_file() {
            return Err(io_error(
                entry.path(),
                io::Error::other("not a file, directory or link"),
            ));
        }
        let content = self.feed(entry.path(), &path, sink)?;
        self.note(b'f', &path, &content);
        Ok(())
    }

    /// One file through the hash into the sink; what the sink leaves unread is hashed all the same.
    fn feed(&self, file: &Path, path: &str, sink: &mut impl FileSink) -> Result<Digest, Error> {
        let failed = |source| io_error(file, source);
        let opened = File::open(file).map_err(failed)?;
        let size = opened.metadata().map_err(failed)?.len();
        self.budget.file(path, size)?;
        self.budget.bytes(size, || self.place()).map_err(Error::Limit)?;
        // No more than was counted, should it be growing.
        let mut hashing = Hashing {
            file: opened.take(size),
            hasher: Hasher::default(),
        };
        let mut tap = Tap::new(&mut hashing, size);
        let outcome = sink.file(path, size, &mut tap);
        if let Some(source) = tap.failure() {
            return Err(failed(source));
        }
        outcome.map_err(Error::Sink)?;
        drop(tap);
        io::copy(&mut hashing, &mut io::sink()).map_err(failed)?;
        Ok(hashing.hasher.finish())
    }

    fn place(&self) -> String {
        format!("folder {}", self.root.display())
    }

    /// Lengths go in, so that no two folders read the same.
    fn note(&mut self, kind: u8, path: &str, content: &Digest) {
        self.hasher.update(&[kind]);
        self.hasher.update(&(path.len() as u64).to_le_bytes());
        self.hasher.update(path.as_bytes());
        self.hasher.update(content.as_str().as_bytes());
    }

    fn resolve(&self, link: &str) -> Result<String, LinkError> {
        let path = self.root.join(link);
        let shown = path
            .read_link()
            .map_or_else(|_| String::new(), |target| target.display().to_string());
        let Ok(real) = path.canonicalize() else {
            return Err(LinkError::Broken(shown));
        };
        if real.is_dir() {
            return Err(LinkError::Directory(shown));
        }
        self.relative(&real).map_err(|_| LinkError::Outside(shown))
    }

    fn relative(&self, path: &Path) -> Result<String, Error> {
        let inside = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        let inside = inside.ok_or_else(|| io_error(path, io::Error::other("the path is not UTF-8")))?;
        Ok(inside.to_owned())
    }
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io {
        path: path.to_owned(),
        source,
    }
}

struct Hashing {
    file: Take<File>,
    hasher: Hasher,
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}
