//! A folder of FBC files as a source, for people who write catalogs.

use std::fs::File;
use std::io::{self, Read, Take};
use std::path::{Path, PathBuf};

use oci::{
    Digest, DigestHasher, FileSink, ImageContent, ImageError, LinkError, UnpackBudget, pass_file,
    pass_link,
};
use walkdir::{DirEntry, WalkDir};
use work::Budget;

use crate::{Error, Pull, SourceSettings};

/// Returns the digest of a folder: sha256 over paths and contents in the order of the walk.
pub(crate) fn digest(dir: &Path, settings: &SourceSettings) -> Result<Digest, Error> {
    FolderWalk::new(dir, settings)?.run(&mut HashOnly)
}

/// Passes the files of a folder to `sink`. Fails if the folder does not have the digest `expected`.
pub(crate) fn read<S: FileSink>(
    dir: &Path,
    expected: &Digest,
    settings: &SourceSettings,
    mut sink: S,
) -> Result<(S, Pull), Error> {
    if FolderWalk::new(dir, settings)?.run(&mut sink)? != *expected {
        return Err(ImageError::Changed(dir.to_owned()).into());
    }
    let folders = settings.content.folders().iter();
    let pull = Pull {
        folders: folders.map(ToString::to_string).collect(),
        ..Pull::default()
    };
    Ok((sink, pull))
}

/// Takes nothing. Only the digest is wanted, so broken links do not matter yet.
struct HashOnly;

impl FileSink for HashOnly {
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

struct FolderWalk {
    root: PathBuf,
    content: ImageContent,
    links: Vec<String>,
    hasher: DigestHasher,
    budget: UnpackBudget,
}

impl FolderWalk {
    fn new(dir: &Path, settings: &SourceSettings) -> Result<Self, Error> {
        let root = dir.canonicalize().map_err(Error::reading(dir))?;
        // A walk over a file finds nothing in it, and an empty catalog would replace the published
        // one.
        if !root.is_dir() {
            return Err(Error::reading(dir)(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self {
            root,
            content: settings.content,
            links: Vec::new(),
            hasher: DigestHasher::default(),
            budget: UnpackBudget::new(&settings.limits, Budget::default()),
        })
    }

    fn run(mut self, sink: &mut impl FileSink) -> Result<Digest, Error> {
        for folder in self.content.folders() {
            let folder = self.root.join(folder);
            for entry in WalkDir::new(folder).min_depth(1).sort_by_file_name() {
                let entry = entry.map_err(|error| {
                    let path = error.path().unwrap_or(&self.root).to_owned();
                    Error::reading(&path)(error.into())
                })?;
                self.entry(&entry, sink)?;
            }
        }
        for link in &self.links {
            pass_link(sink, link, self.resolve(link))?;
        }
        Ok(self.hasher.finish())
    }

    fn entry(&mut self, entry: &DirEntry, sink: &mut impl FileSink) -> Result<(), Error> {
        self.budget.count_entry(|| self.place())?;
        let kind = entry.file_type();
        if kind.is_dir() {
            return Ok(());
        }
        let path = self.relative(entry.path())?;
        self.budget.check_path(path.as_bytes(), || self.place())?;
        let failed = Error::reading(entry.path());
        if kind.is_symlink() {
            let target = entry.path().read_link().map_err(failed)?;
            let target = Digest::of(target.as_os_str().as_encoded_bytes());
            self.hash(b'l', &path, &target);
            self.links.push(path);
        } else if kind.is_file() {
            let content = self.feed(entry.path(), &path, sink)?;
            self.hash(b'f', &path, &content);
        } else {
            return Err(failed(io::Error::other("not a file, directory or link")));
        }
        Ok(())
    }

    /// Adds a file or a link to the hash of the folder.
    fn hash(&mut self, kind: u8, path: &str, content: &Digest) {
        self.hasher.update(&[kind]);
        // The length goes in, so that no two folders give the same bytes.
        self.hasher.update(&(path.len() as u64).to_le_bytes());
        self.hasher.update(path.as_bytes());
        self.hasher.update(content.as_str().as_bytes());
    }

    /// Reads one file through the hash into the sink. Also hashes what the sink leaves unread.
    fn feed(&self, file: &Path, path: &str, sink: &mut impl FileSink) -> Result<Digest, Error> {
        let failed = Error::reading(file);
        let opened = work::open_file(file).map_err(failed)?;
        let size = opened.metadata().map_err(failed)?.len();
        self.budget.check_file(path, size)?;
        self.budget.count_bytes(size, || self.place())?;
        let mut hashing = HashingFile {
            // A file that grows must not bring more bytes than were counted.
            file: opened.take(size),
            hasher: DigestHasher::default(),
        };
        pass_file(sink, path, size, &mut hashing, failed)?;
        io::copy(&mut hashing, &mut io::sink()).map_err(failed)?;
        Ok(hashing.hasher.finish())
    }

    fn place(&self) -> String {
        format!("folder {}", self.root.display())
    }

    fn resolve(&self, link: &str) -> Result<String, LinkError> {
        let path = self.root.join(link);
        let target = match path.read_link() {
            Ok(target) => target.display().to_string(),
            Err(_) => String::new(),
        };
        let Ok(real) = path.canonicalize() else {
            return Err(LinkError::Broken(target));
        };
        if real.is_dir() {
            return Err(LinkError::Directory(target));
        }
        self.relative(&real).map_err(|_| LinkError::Outside(target))
    }

    fn relative(&self, path: &Path) -> Result<String, Error> {
        let inside = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        match inside {
            Some(inside) => Ok(inside.to_owned()),
            None => Err(Error::reading(path)(io::Error::other(
                "the path is not UTF-8",
            ))),
        }
    }
}

struct HashingFile {
    file: Take<File>,
    hasher: DigestHasher,
}

impl Read for HashingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}
