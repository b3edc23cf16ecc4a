use std::io::{self, Write};

use layout::{Hasher, Stored};

/// Counts and hashes what goes through.
pub(crate) struct Measured<W> {
    sink: W,
    hasher: Hasher,
    size: u64,
}

impl<W: Write> Measured<W> {
    pub(crate) fn new(sink: W) -> Self {
        Self {
            sink,
            hasher: Hasher::new(),
            size: 0,
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<Stored> {
        self.sink.flush()?;
        Ok(Stored {
            size: self.size,
            sha256: self.hasher.finish(),
        })
    }
}

impl<W: Write> Write for Measured<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
