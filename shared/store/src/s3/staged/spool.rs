use std::{fs::File, io, io::Write as _, mem, sync::Arc};

use bytes::BytesMut;
use tokio::task::spawn_blocking;

use super::Source;

/// Number of bytes of an object that are kept in memory before they go to the file. Small catalogs touch no disk, and large
/// ones write in pieces that keep a disk busy.
const MEMORY: usize = 1 << 20;

/// Bytes that were written so far, in memory and in a file.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    /// Bytes that are not in the file yet.
    rest: BytesMut,
    file: Option<File>,
    filed: u64,
}

impl Spool {
    pub(crate) async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.rest.len() == MEMORY {
                self.spill().await?;
            }
            let (fitting, more) = bytes.split_at(bytes.len().min(MEMORY - self.rest.len()));
            self.rest.extend_from_slice(fitting);
            bytes = more;
        }
        Ok(())
    }

    pub(crate) async fn finish(mut self) -> io::Result<Source> {
        if self.file.is_some() && !self.rest.is_empty() {
            self.spill().await?;
        }
        Ok(match self.file {
            None => Source::Memory(self.rest.freeze()),
            Some(file) => Source::File {
                file: Arc::new(file),
                size: self.filed,
            },
        })
    }

    /// Moves the bytes in memory to the file. The file has no name and goes with its handle, also after a crash.
    async fn spill(&mut self) -> io::Result<()> {
        let (file, rest) = (self.file.take(), mem::take(&mut self.rest));
        let (file, mut rest) = spawn_blocking(move || append(file, rest)).await??;
        self.filed += rest.len() as u64;
        rest.clear();
        (self.file, self.rest) = (Some(file), rest);
        Ok(())
    }
}

fn append(file: Option<File>, bytes: BytesMut) -> io::Result<(File, BytesMut)> {
    let mut file = match file {
        Some(file) => file,
        None => tempfile::tempfile()?,
    };
    file.write_all(&bytes)?;
    Ok((file, bytes))
}
