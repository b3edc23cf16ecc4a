use std::io::{self, Read};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of bytes in which the decoder looks for the first brace; `bufio`'s default buffer size in
/// Go.
pub(crate) const PEEK: usize = 4096;

/// Memory of chunks that were dropped, for new chunks of any file. Without it, to get new memory
/// for each chunk takes a twentieth of the processor time of a publication.
#[derive(Debug, Clone, Default)]
pub struct ChunkBuffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl ChunkBuffers {
    fn free(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that were read. The memory behind them was written before, so that it need not be zeroed
/// for each chunk.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    memory: Vec<u8>,
    length: usize,
    buffers: Option<ChunkBuffers>,
}

impl Buffer {
    /// Creates an empty buffer, which gives its memory back.
    pub(crate) fn reusing(buffers: &ChunkBuffers) -> Self {
        Self {
            memory: buffers.free().pop().unwrap_or_default(),
            length: 0,
            buffers: Some(buffers.clone()),
        }
    }

    /// Reads until it has `size` bytes. Returns false if the reader ends before.
    pub(crate) fn fill(&mut self, reader: &mut impl Read, size: usize) -> io::Result<bool> {
        while self.length < size {
            if self.length == self.memory.len() {
                // At once if other files use it too; else it is about as small as its file.
                self.grow(match self.buffers {
                    Some(_) => size,
                    None => size.min((2 * self.length).max(PEEK)),
                });
            }
            let end = self.memory.len().min(size);
            match reader.read(&mut self.memory[self.length..end]) {
                Ok(0) => return Ok(false),
                Ok(read) => self.length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn grow(&mut self, size: usize) {
        self.memory
            .reserve_exact(size.saturating_sub(self.memory.len()));
        self.memory.resize(size, 0);
    }

    /// Keeps the first `at` bytes, and returns the others.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        let mut rest = self.buffers.as_ref().map(Self::reusing).unwrap_or_default();
        rest.length = self.length - at;
        if rest.memory.len() < rest.length {
            rest.grow(rest.length);
        }
        rest.memory[..rest.length].copy_from_slice(&self[at..]);
        self.length = at;
        rest
    }

    /// Removes the first `length` bytes.
    pub(crate) fn skip(&mut self, length: usize) {
        self.memory.copy_within(length..self.length, 0);
        self.length -= length;
    }

    /// Frees the memory that its bytes do not need, unless it gives that back and it is at most
    /// `most` bytes.
    pub(crate) fn shrink(&mut self, most: usize) {
        self.buffers.take_if(|_| self.memory.len() > most);
        if self.buffers.is_none() {
            self.memory.truncate(self.length);
            self.memory.shrink_to_fit();
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(buffers) = &self.buffers
            && !self.memory.is_empty()
        {
            buffers.free().push(std::mem::take(&mut self.memory));
        }
    }
}

/// Returns the number of line feeds in `bytes`.
pub(crate) fn newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Chunks, FbcLimits};

    fn lines(file: &str, buffers: &ChunkBuffers) -> String {
        let (limits, mut lines) = (FbcLimits::default(), String::new());
        for chunk in Chunks::new(file.as_bytes(), limits, PEEK).reusing(buffers) {
            let push =
                &mut |meta: crate::Meta<'_>| lines += std::str::from_utf8(meta.line).unwrap();
            chunk.unwrap().metas(&limits, push).unwrap();
        }
        lines
    }

    #[test]
    fn chunks_use_the_memory_of_others_unless_it_is_large() {
        let buffers = ChunkBuffers::default();
        let small = "{\"schema\":\"a\"}\n".repeat(1000);
        let large = format!("{{\"schema\":\"{}\"}}\n", "b".repeat(5 * PEEK));
        for file in [&small, &large, &small, "", &small[..15], &large] {
            assert_eq!(lines(file, &buffers), *file);
            let free = buffers.free();
            assert!((1..=2).contains(&free.len()), "{}", free.len());
            assert!(free.iter().all(|memory| memory.len() <= 2 * PEEK));
        }
    }
}
