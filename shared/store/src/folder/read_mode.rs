use std::{fs::File, io, ops::Range};

use bytes::Bytes;
use rustix::{buffer::spare_capacity, io::pread};

use super::{Dir, split};

/// Permission of a read to wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadMode {
    /// Waits as long as the disk needs. Only for threads that may block.
    Blocking,
    /// Reads from memory only: a read that the caches of the kernel cannot answer is an error, and the caller tries again on a
    /// thread. Handing a read to a thread costs several times the copy of some kilobytes out of the page cache.
    CacheOnly,
}

impl ReadMode {
    /// Opens the file at a path of plain names.
    pub(super) fn open(self, root: &Dir, path: &str) -> io::Result<File> {
        match self {
            Self::Blocking => {
                let (folder, name) = split(path);
                root.descend(folder)?.open(name)
            }
            Self::CacheOnly => cached::open(root, path),
        }
    }

    /// Reads the whole range, or fails.
    pub(super) fn read(self, file: &File, range: Range<u64>) -> io::Result<Bytes> {
        let length = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
        match self {
            Self::Blocking => read(file, range, length),
            Self::CacheOnly => cached::read(file, range, length),
        }
    }
}

/// Reads a range into memory that is not cleared first.
fn read(file: &File, mut range: Range<u64>, length: usize) -> io::Result<Bytes> {
    let mut chunk = Vec::with_capacity(length);
    while !range.is_empty() {
        match pread(file, spare_capacity(&mut chunk), range.start)? {
            0 => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file was cut short")),
            read => range.start += read as u64,
        }
    }
    chunk.truncate(length);
    Ok(chunk.into())
}

#[cfg(target_os = "linux")]
mod cached {
    use std::io::IoSliceMut;

    use rustix::{
        fs::{Mode, OFlags, ResolveFlags, openat2},
        io::{ReadWriteFlags, preadv2},
    };

    use super::{Bytes, Dir, File, Range, io};

    /// Maximum size of a read on the thread that also serves other requests, in bytes.
    const MOST: usize = 64 << 10;

    pub(super) fn open(root: &Dir, path: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::CACHED | ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let file = File::from(openat2(root.file(), path, flags, Mode::empty(), resolve)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    /// Reads the range in one call. A short result means that a page is not in memory, or that the file has ended.
    pub(super) fn read(file: &File, range: Range<u64>, length: usize) -> io::Result<Bytes> {
        if length > MOST {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut chunk = vec![0; length];
        let read = preadv2(
            file,
            &mut [IoSliceMut::new(&mut chunk)],
            range.start,
            ReadWriteFlags::NOWAIT,
        )?;
        if read == length {
            Ok(chunk.into())
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }
}

/// Other kernels cannot be asked for no more than their caches hold.
#[cfg(not(target_os = "linux"))]
mod cached {
    use super::{Bytes, Dir, File, Range, io};

    pub(super) fn open(_: &Dir, _: &str) -> io::Result<File> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    pub(super) fn read(_: &File, _: Range<u64>, _: usize) -> io::Result<Bytes> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const BOTH: [ReadMode; 2] = [ReadMode::Blocking, ReadMode::CacheOnly];

    #[test]
    fn both_read_the_same() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/b"), "0123456789").unwrap();
        let root = Dir::root(folder.path()).unwrap();
        let file = ReadMode::Blocking.open(&root, "a/b").unwrap();
        assert_eq!(ReadMode::Blocking.read(&file, 2..5).unwrap(), "234");
        // Not every file system can be asked for what is cached only.
        if let Ok(file) = ReadMode::CacheOnly.open(&root, "a/b")
            && let Ok(read) = ReadMode::CacheOnly.read(&file, 2..5)
        {
            assert_eq!(read, "234");
        }
        for mode in BOTH {
            assert!(mode.read(&file, 5..11).is_err(), "{mode:?} beyond the end");
        }
    }

    #[test]
    fn neither_follows_a_link() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/b"), "x").unwrap();
        symlink(folder.path().join("a"), folder.path().join("c")).unwrap();
        symlink(folder.path().join("a/b"), folder.path().join("d")).unwrap();
        let root = Dir::root(folder.path()).unwrap();
        for (mode, path) in BOTH.into_iter().flat_map(|mode| [(mode, "c/b"), (mode, "d")]) {
            assert!(mode.open(&root, path).is_err(), "{mode:?} {path}");
        }
    }
}
