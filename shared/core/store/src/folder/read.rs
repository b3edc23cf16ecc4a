use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use model::{Key, Sha256};
use tokio::task::spawn_blocking;

use crate::folder::buffer::{Buffer, CHUNK};
use crate::folder::{Access, Dir, Inner, Temp, joined, split};
use crate::{Body, Fetched, Get, Object, ObjectInfo, Operation, Stat, StoreError, Version};

/// Object that was found.
pub(super) struct Opened {
    pub(super) info: ObjectInfo,
    file: File,
    /// All bytes of a mutable object, because only these tell its version. It is a small document.
    content: Option<Bytes>,
}

impl Inner {
    /// Reads an object. The inner error is final. The outer one may only mean that an impatient
    /// read had to wait.
    pub(super) fn get(
        &self,
        key: &Key,
        get: &Get,
        mode: ReadMode,
    ) -> io::Result<Result<Fetched, StoreError>> {
        let Opened {
            info,
            file,
            content,
        } = self.open(key, mode)?;
        if get.unless.as_ref() == Some(&info.version) {
            return Ok(Ok(Fetched::NotModified));
        }
        let range = match get.resolve(info.size, key) {
            Ok(range) => range,
            Err(error) => return Ok(Err(error)),
        };
        let body = match content {
            Some(content) => {
                let start = usize::try_from(range.start).unwrap_or(usize::MAX);
                let end = usize::try_from(range.end).unwrap_or(usize::MAX);
                of_bytes(content.slice(start..end))
            }
            None => of_file(file, key.to_string(), range, mode)?,
        };
        Ok(Ok(Fetched::Object(Object { info, body })))
    }

    /// Opens an object. The handle keeps the content whole when the key is replaced or deleted.
    pub(super) fn open(&self, key: &Key, mode: ReadMode) -> io::Result<Opened> {
        let file = mode.open(&self.root, &key.to_string())?;
        let metadata = file.metadata()?;
        let size = metadata.len();
        let mut content = None;
        let version = if key.is_immutable() {
            // A caller that finds an object may rely on it, and its writer may not have flushed it
            // yet.
            if self.access == Access::ReadWrite {
                self.remember(key)?;
            }
            file_version(&metadata)
        } else {
            let bytes = mode.read(&file, 0..size)?;
            let version = content_version(&bytes);
            content = Some(bytes);
            version
        };
        Ok(Opened {
            info: ObjectInfo {
                size,
                version,
                modified: modified(&metadata),
            },
            file,
            content,
        })
    }

    /// Returns the facts about an object; `None` if it is missing. Opens it as a read does, so that
    /// both agree on what is an object.
    pub(super) fn find_file(&self, key: &Key) -> io::Result<Option<ObjectInfo>> {
        match self.open(key, ReadMode::Blocking) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(|opened| Some(opened.info)),
        }
    }

    /// Looks at an object and at the file system's clock, which may be that of another machine.
    pub(super) fn stat(&self, key: &Key) -> io::Result<Stat> {
        let object = self.find_file(key)?;
        // Taken after the object was read, so that no object is younger than its date.
        let date = modified(&Temp::create(self.temp_folder()?)?.file.metadata()?);
        Ok(Stat { date, object })
    }
}

/// Returns the version of a mutable object. It is a hash, since the file system may give a new file
/// the inode and times of an old one.
pub(super) fn content_version(content: &[u8]) -> Version {
    Version(Sha256::of(content).to_string())
}

/// Returns the version of an immutable object. Its hash is in its name, so its bytes need not be
/// hashed again. The facts of the file system only tell a repaired file from the damaged one.
pub(super) fn file_version(metadata: &Metadata) -> Version {
    Version(format!(
        "{:x}-{:x}.{:x}-{:x}",
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ino()
    ))
}

/// Returns the time at which the file got its content and its name. A rename changes the latter
/// time only: a writer that was stopped between its writing and its renaming must not make an
/// object that is born old.
pub(super) fn modified(metadata: &Metadata) -> SystemTime {
    let written = time(metadata.mtime(), metadata.mtime_nsec());
    let renamed = time(metadata.ctime(), metadata.ctime_nsec());
    written.max(renamed)
}

/// Converts seconds and nanoseconds since 1970. An earlier time counts as 1970.
fn time(seconds: i64, nanos: i64) -> SystemTime {
    let seconds = Duration::from_secs(seconds.try_into().unwrap_or(0));
    SystemTime::UNIX_EPOCH + seconds + Duration::from_nanos(nanos.try_into().unwrap_or(0))
}

/// Permission of a read to wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadMode {
    /// Waits as long as the disk needs. Only for threads that may block.
    Blocking,
    /// Reads from memory only: a read that the caches of the kernel cannot answer is an error, and
    /// the caller tries again on a thread. Handing a read to a thread costs several times the copy
    /// of some kilobytes out of the page cache.
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
            #[cfg(target_os = "linux")]
            Self::CacheOnly => cached::open(root, path),
            #[cfg(not(target_os = "linux"))]
            Self::CacheOnly => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Reads the whole range, or fails.
    pub(super) fn read(self, file: &File, range: Range<u64>) -> io::Result<Bytes> {
        let length = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
        if self == Self::CacheOnly && length > CHUNK {
            // It would keep other requests of this thread waiting.
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut buffer = Buffer::take(length);
        match self {
            Self::Blocking => file.read_exact_at(&mut buffer.0, range.start)?,
            #[cfg(target_os = "linux")]
            Self::CacheOnly => cached::read(file, &mut buffer.0, range.start)?,
            // Other kernels cannot be asked for no more than their caches hold.
            #[cfg(not(target_os = "linux"))]
            Self::CacheOnly => return Err(io::ErrorKind::WouldBlock.into()),
        }
        Ok(Bytes::from_owner(buffer))
    }
}

#[cfg(target_os = "linux")]
mod cached {
    use std::io::IoSliceMut;

    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::{ReadWriteFlags, preadv2};

    use super::{Dir, File, io};

    pub(super) fn open(root: &Dir, path: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::CACHED | ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let file = File::from(openat2(&root.0, path, flags, Mode::empty(), resolve)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    /// Fills the buffer in one call. A short result means that a page is not in memory, or that the
    /// file has ended.
    pub(super) fn read(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let length = buffer.len();
        let buffers = &mut [IoSliceMut::new(buffer)];
        if preadv2(file, buffers, offset, ReadWriteFlags::NOWAIT)? < length {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }
}

/// Reads the first chunk of a range of a file now, and the others on demand. Most objects have no
/// second one.
pub(super) fn of_file(
    file: File,
    key: String,
    range: Range<u64>,
    mode: ReadMode,
) -> io::Result<Body> {
    let rest = range.end.min(range.start + CHUNK as u64)..range.end;
    let first = mode.read(&file, range.start..rest.start)?;
    if rest.is_empty() {
        return Ok(of_bytes(first));
    }
    let chunks = file_chunks(Arc::new(file), rest)
        .map_err(move |source| StoreError::failed(Operation::Get, &key, source));
    Ok(of_bytes(first).chain(chunks).boxed())
}

/// Returns a body of one chunk, or of none for no bytes.
pub(super) fn of_bytes(bytes: Bytes) -> Body {
    if bytes.is_empty() {
        return stream::empty().boxed();
    }
    stream::iter([Ok(bytes)]).boxed()
}

/// Reads a range of a file chunk by chunk, without moving the offset of the file: several streams
/// can read one file. None is read ahead: the kernel does that, and does not count what it reads as
/// the memory of this process. No thread waits for a slow client: each is borrowed for one chunk,
/// if the disk has to be waited for.
#[expect(
    clippy::disallowed_methods,
    reason = "only bytes are moved, and nothing is parsed"
)]
pub fn file_chunks(
    file: Arc<File>,
    range: Range<u64>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync + use<> {
    let reads = range.clone().step_by(CHUNK).map(move |start| {
        let file = Arc::clone(&file);
        let chunk = start..range.end.min(start + CHUNK as u64);
        async move {
            // The thread that sends a chunk has it in the cache of its processor then.
            if let Ok(read) = ReadMode::CacheOnly.read(&file, chunk.clone()) {
                return Ok(read);
            }
            joined(spawn_blocking(move || ReadMode::Blocking.read(&file, chunk)).await)
        }
    });
    stream::iter(reads).then(|read| read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn read_of_a_file_that_is_cut_short_fails() {
        let file = tempfile::tempfile().unwrap();
        let size = CHUNK as u64 + 10;
        file.write_all_at(&vec![7; size as usize], 0).unwrap();
        let body = of_file(
            file.try_clone().unwrap(),
            "k".into(),
            0..size,
            ReadMode::Blocking,
        )
        .unwrap();
        file.set_len(size - 5).unwrap();
        let error = body.try_collect::<Vec<_>>().await.unwrap_err();
        let operation = Operation::Get;
        assert!(
            matches!(&error, StoreError::Failed { operation: found, .. } if *found == operation),
            "{error}"
        );
        for mode in [ReadMode::Blocking, ReadMode::CacheOnly] {
            assert!(mode.read(&file, size - 10..size).is_err(), "{mode:?}");
        }
    }
}
