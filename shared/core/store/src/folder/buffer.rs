use parking_lot::Mutex;

/// Size of a chunk in bytes: large enough that handing it over costs little, small enough for a
/// thousand slow clients, each of which holds one or two.
pub(super) const CHUNK: usize = 64 << 10;

/// Maximum number of buffers that wait for the next chunk: 8 MB of them.
const FREE_MAX: usize = 128;

/// Buffers of chunks that were sent.
static FREE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Memory of one chunk. It serves for another one once it was sent, because to map the pages of new
/// memory takes longer than to read the bytes into it.
pub(super) struct Buffer(pub(super) Vec<u8>);

impl Buffer {
    /// Returns a buffer of `length` bytes, which are to be overwritten.
    pub(super) fn take(length: usize) -> Self {
        if length == CHUNK
            && let Some(free) = FREE.lock().pop()
        {
            return Self(free);
        }
        Self(vec![0; length])
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.0.len() != CHUNK {
            return;
        }
        let mut free = FREE.lock();
        if free.len() < FREE_MAX {
            free.push(std::mem::take(&mut self.0));
        }
    }
}
