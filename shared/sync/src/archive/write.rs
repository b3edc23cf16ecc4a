use std::io::{self, Read, Write};

use futures_util::TryStreamExt;
use model::{Document, Hasher, Key, ObjectDigest, Sha256};
use store::{Fetched, Get, Object};
use tokio::runtime::Handle;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::{
    ArchiveError, Pack, PackedObject,
    manifest::Volume,
    tar_format::{MANIFEST, VOLUME, header},
};

impl Pack {
    /// Writes one volume, counted from 1, and returns its size and hash. Blocks; call it on a blocking thread of a
    /// runtime. After an error, discard everything that was written.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] for an object that is not what the Snapshot says, [`ArchiveError::Write`],
    /// [`ArchiveError::Store`].
    pub fn write(&self, volume: u32, sink: impl Write) -> Result<ObjectDigest, ArchiveError> {
        let mut tar = tar::Builder::new(HashingIo::new(sink));
        append(&mut tar, MANIFEST, &self.manifest_bytes)?;
        let document = Volume {
            volume,
            manifest: Sha256::of(&self.manifest_bytes),
        };
        append(&mut tar, VOLUME, &document.to_bytes())?;
        for object in self.manifest.objects.iter().filter(|object| object.volume == volume) {
            match self.documents.get(&object.key) {
                Some(bytes) => append(&mut tar, &object.key, bytes)?,
                None => self.append_stored(&mut tar, object)?,
            }
        }
        let mut written = tar.into_inner().map_err(ArchiveError::Write)?;
        written.flush().map_err(ArchiveError::Write)?;
        Ok(written.digest())
    }

    fn append_stored(&self, tar: &mut tar::Builder<impl Write>, object: &PackedObject) -> Result<(), ArchiveError> {
        let damaged = || ArchiveError::Damaged(object.key.clone());
        let key = Key::parse(&object.key).ok_or_else(damaged)?;
        let runtime = Handle::current();
        let body = match runtime.block_on(self.store.get(&key, Get::default())) {
            Ok(Fetched::Object(Object { info, body })) if info.size == object.size => body,
            Err(error) if !error.is_not_found() => return Err(ArchiveError::Store(error.into())),
            _ => return Err(damaged()),
        };
        let stream = StreamReader::new(body.map_err(io::Error::other));
        let mut source = HashingIo::new(SyncIoBridge::new_with_handle(stream, runtime));
        let header = header(&object.key, object.size).map_err(ArchiveError::Write)?;
        tar.append(&header, &mut source).map_err(ArchiveError::Write)?;
        if source.digest() == object.digest() {
            Ok(())
        } else {
            Err(damaged())
        }
    }
}

fn append(tar: &mut tar::Builder<impl Write>, path: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
    let header = header(path, bytes.len() as u64).map_err(ArchiveError::Write)?;
    tar.append(&header, bytes).map_err(ArchiveError::Write)
}

/// Reader or writer that hashes and counts the bytes that pass.
struct HashingIo<T> {
    inner: T,
    hasher: Hasher,
    size: u64,
}

impl<T> HashingIo<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            hasher: Hasher::new(),
            size: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
    }

    fn digest(self) -> ObjectDigest {
        ObjectDigest {
            sha256: self.hasher.finish(),
            size: self.size,
        }
    }
}

impl<W: Write> Write for HashingIo<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for HashingIo<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.add(&buffer[..read]);
        Ok(read)
    }
}
