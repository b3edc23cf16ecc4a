use std::io::{self, Write};

use model::{Hasher, ObjectDigest};

/// Counts and hashes bytes on their way to a sink.
pub(crate) struct HashingWriter<W> {
    sink: W,
    hasher: Hasher,
    size: u64,
}

impl<W: Write> HashingWriter<W> {
    pub(crate) fn new(sink: W) -> Self {
        Self {
            sink,
            hasher: Hasher::new(),
            size: 0,
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<ObjectDigest> {
        self.sink.flush()?;
        Ok(ObjectDigest {
            size: self.size,
            sha256: self.hasher.finish(),
        })
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A sink may take fewer bytes than it is given: only those were written.
        let written = self.sink.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
