use super::TextRange;
use super::memory::MemoryMeter;
use super::offset;

/// Marks a key that is found in [`EscapedKeys`], not in the text.
const ESCAPED: u32 = 1 << 31;

/// Position of one key and its value in the text. It is small, because a document may have one for every two bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectEntry {
    /// Offset at which `"key":` starts.
    pub(super) start: u32,
    /// End of the value; 0 until the next entry starts or the object ends.
    pub(super) end: u32,
    /// Length of the key in the text, or [`ESCAPED`] and its place in [`EscapedKeys`].
    key: u32,
}

impl ObjectEntry {
    /// Creates the entry of a key without escapes.
    pub(super) fn plain(start: usize, length: usize) -> Self {
        Self {
            start: offset(start),
            end: 0,
            // Text is at most 4 GiB, half of which a key never has: its source takes memory too.
            key: offset(length) & !ESCAPED,
        }
    }

    /// Creates the entry of a key that [`EscapedKeys::push`] has put at `place`.
    pub(super) fn escaped(start: usize, place: usize) -> Self {
        Self {
            start: offset(start),
            end: 0,
            key: offset(place) | ESCAPED,
        }
    }

    pub(super) fn range(&self) -> TextRange {
        TextRange {
            start: self.start,
            end: self.end,
        }
    }

    /// Returns the key without escapes.
    #[inline]
    pub(super) fn key<'a>(&self, text: &'a [u8], keys: &'a EscapedKeys) -> &'a [u8] {
        if self.key & ESCAPED == 0 {
            let start = self.start as usize + 1;
            &text[start..start + self.key as usize]
        } else {
            keys.get((self.key & !ESCAPED) as usize)
        }
    }

    /// Returns the offset of the value in the text.
    pub(super) fn value(&self, text: &[u8]) -> usize {
        let start = self.start as usize;
        // After the closing quote comes a colon.
        if self.key & ESCAPED == 0 {
            start + self.key as usize + 3
        } else {
            super::repeat::string_end(text, start) + 1
        }
    }
}

/// Keys that have escapes in the text, without them. Each has its length before it.
#[derive(Debug, Default)]
pub(super) struct EscapedKeys(Vec<u8>);

impl EscapedKeys {
    const LENGTH: usize = size_of::<u32>();

    /// Appends a key, if it fits into memory, and returns its place.
    pub(super) fn push(&mut self, key: &str, meter: &mut MemoryMeter) -> usize {
        let place = self.0.len();
        if meter.reserve(&mut self.0, Self::LENGTH + key.len()) {
            self.0.extend_from_slice(&offset(key.len()).to_le_bytes());
            self.0.extend_from_slice(key.as_bytes());
        }
        place
    }

    fn get(&self, place: usize) -> &[u8] {
        let (length, rest) = self.0[place..].split_first_chunk().unwrap_or((&[0; 4], &[]));
        &rest[..u32::from_le_bytes(*length) as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }
}
