/// Splitter of text that comes in chunks of any size into its lines. It holds at most one line.
///
/// ```
/// use catalog_mirror_model::text::LineBuffer;
///
/// let mut found = Vec::new();
/// let mut lines = LineBuffer::default();
/// lines.push(b"one\ntw", |line| found.push(line.to_vec()));
/// lines.push(b"o\nthree", |line| found.push(line.to_vec()));
/// lines.finish(|line| found.push(line.to_vec()));
/// assert_eq!(found, [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]);
/// ```
#[derive(Debug, Default)]
pub struct LineBuffer {
    /// Start of a line whose end has not come yet.
    held: Vec<u8>,
}

impl LineBuffer {
    /// Passes each line that ends in `chunk` to `each`, without its newline.
    pub fn push(&mut self, mut chunk: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            // Most lines lie within one chunk and are not copied.
            if self.held.is_empty() {
                each(line);
            } else {
                self.held.extend_from_slice(line);
                each(&std::mem::take(&mut self.held));
            }
            chunk = rest;
        }
        self.held.extend_from_slice(chunk);
    }

    /// Passes a last line without a newline to `each`, if there is one.
    pub fn finish(&mut self, each: impl FnOnce(&[u8])) {
        let last = std::mem::take(&mut self.held);
        if !last.is_empty() {
            each(&last);
        }
    }
}
