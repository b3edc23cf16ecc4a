use std::io::{self, Read, Write};

use futures_util::TryStreamExt;
use layout::{Document, Hasher, Key, Sha256, Stored};
use store::{Fetched, Get, Object};
use tokio::runtime::Handle;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::{
    Pack, PackError, PackedObject,
    manifest::Volume,
    tape::{MANIFEST, VOLUME, header},
};

impl Pack {
    /// Writes one volume, counted from 1, and says what was written. To be called on a thread that may block, inside a
    /// runtime. What was written before an error is worthless.
    ///
    /// # Errors
    /// [`PackError::Damaged`] for objects that are not what the Snapshot says, [`PackError::Write`].
    pub fn write(&self, volume: u32, sink: impl Write) -> Result<Stored, PackError> {
        let mut tar = tar::Builder::new(Measured::new(sink));
        append(&mut tar, MANIFEST, &self.manifest_bytes)?;
        append(&mut tar, VOLUME, &self.volume(volume).to_bytes())?;
        for object in self.manifest.objects.iter().filter(|object| object.volume == volume) {
            match self.documents.get(&object.key) {
                Some(bytes) => append(&mut tar, &object.key, bytes)?,
                None => self.append_stored(&mut tar, object)?,
            }
        }
        let measured = tar.into_inner().map_err(PackError::Write)?;
        measured.finish().map_err(PackError::Write)
    }

    fn volume(&self, volume: u32) -> Volume {
        Volume {
            volume,
            manifest: Sha256::of(&self.manifest_bytes),
        }
    }

    fn append_stored(&self, tar: &mut tar::Builder<impl Write>, object: &PackedObject) -> Result<(), PackError> {
        let damaged = || PackError::Damaged(object.key.clone());
        let key = Key::parse(&object.key).ok_or_else(damaged)?;
        let runtime = Handle::current();
        let body = match runtime.block_on(self.store.get(&key, Get::default())) {
            Ok(Fetched::Object(Object { info, body })) if info.size == object.size => body,
            Err(error) if !error.is_not_found() => return Err(PackError::Read(error.into())),
            _ => return Err(damaged()),
        };
        let mut source = Measured::new(SyncIoBridge::new_with_handle(
            StreamReader::new(body.map_err(io::Error::other)),
            runtime,
        ));
        let header = header(&object.key, object.size).map_err(PackError::Write)?;
        tar.append(&header, &mut source).map_err(PackError::Write)?;
        if source.stored()
            == (Stored {
                size: object.size,
                sha256: object.sha256,
            })
        {
            Ok(())
        } else {
            Err(damaged())
        }
    }
}

fn append(tar: &mut tar::Builder<impl Write>, path: &str, bytes: &[u8]) -> Result<(), PackError> {
    let header = header(path, bytes.len() as u64).map_err(PackError::Write)?;
    tar.append(&header, bytes).map_err(PackError::Write)
}

/// Counts and hashes what goes through.
struct Measured<T> {
    inner: T,
    hasher: Hasher,
    size: u64,
}

impl<T> Measured<T> {
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

    fn stored(self) -> Stored {
        Stored {
            size: self.size,
            sha256: self.hasher.finish(),
        }
    }
}

impl<W: Write> Measured<W> {
    fn finish(mut self) -> io::Result<Stored> {
        self.inner.flush()?;
        Ok(self.stored())
    }
}

impl<W: Write> Write for Measured<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Measured<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.add(&buffer[..read]);
        Ok(read)
    }
}
