use std::ops::Range;

use crate::canon::memory::{MemoryMeter, offset};
use crate::json;

/// Marks a key that is found in [`EscapedKeys`], not in the text.
pub(super) const ESCAPED: u32 = 1 << 31;

/// Position of one key and its value in the text. It is small, because a document may have one for
/// every two bytes.
#[derive(Clone, Copy)]
pub(super) struct ObjectEntry {
    /// Offset at which `"key":` starts.
    pub(super) start: u32,
    /// End of the value; 0 until the next entry starts or the object ends.
    pub(super) end: u32,
    /// Length of the key in the text, or [`ESCAPED`] and its place in [`EscapedKeys`].
    pub(super) key: u32,
}

impl ObjectEntry {
    pub(super) fn range(&self) -> Range<u32> {
        self.start..self.end
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
            json::string_end(text, start + 1).unwrap_or(text.len()) + 1
        }
    }
}

/// Keys that have escapes in the text, without them. Each has its length before it.
#[derive(Default)]
pub(super) struct EscapedKeys(pub(super) Vec<u8>);

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
        let (length, rest) = self.0[place..]
            .split_first_chunk()
            .unwrap_or((&[0; 4], &[]));
        &rest[..u32::from_le_bytes(*length) as usize]
    }
}

/// Object whose entries are not sorted.
pub(super) struct UnsortedObject {
    /// Offset of its `{` in the text.
    pub(super) start: u32,
    /// Offset after its `}` in the text.
    pub(super) end: u32,
    /// Its entries in order, as a range of the list of text ranges.
    pub(super) order: Range<u32>,
}

enum CopyTask {
    /// Copy this part of the text.
    Text(Range<u32>),
    /// Copy these entries of an object; the flag is true before the first one.
    Entries(Range<u32>, bool),
}

/// Copies `text` to `out` and sorts the entries of every noted object.
pub(super) fn rearrange(
    text: &[u8],
    moves: &mut [UnsortedObject],
    order: &[Range<u32>],
    out: &mut Vec<u8>,
    meter: &mut MemoryMeter,
) {
    // Objects are noted when they are closed, inner ones first; the copy needs them in the order of
    // the text.
    moves.sort_unstable_by_key(|object| object.start);
    // At most: entries that a later one replaces are left out.
    if !meter.reserve(out, text.len() + 1) {
        return;
    }
    // A stack instead of recursion: the input decides the depth, and a deep one must not overflow
    // the thread's stack.
    let mut todo = vec![CopyTask::Text(0..offset(text.len()))];
    while let Some(next) = todo.pop() {
        match next {
            CopyTask::Text(range) => {
                let next = moves.partition_point(|object| object.start < range.start);
                let Some(object) = moves.get(next).filter(|object| object.start < range.end) else {
                    out.extend_from_slice(&text[range.start as usize..range.end as usize]);
                    continue;
                };
                // Up to the brace of the first unsorted object, then its entries, then what is
                // left.
                out.extend_from_slice(&text[range.start as usize..=object.start as usize]);
                todo.push(CopyTask::Text(object.end - 1..range.end));
                todo.push(CopyTask::Entries(object.order.clone(), true));
            }
            CopyTask::Entries(entries, first) => {
                if entries.is_empty() {
                    continue;
                }
                if !first {
                    out.push(b',');
                }
                todo.push(CopyTask::Entries(entries.start + 1..entries.end, false));
                todo.push(CopyTask::Text(order[entries.start as usize].clone()));
            }
        }
    }
}
