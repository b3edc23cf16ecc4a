//! Builds one canonical line from the parts of a document, in the order in which they are read.
//!
//! The parts are appended as canonical text. Objects whose keys are not sorted are only noted. One
//! last pass copies the text in the right order, so every byte is moved at most once more, however
//! deep the document is nested.
//!
//! ```text
//! text     {"b":1,"a":{"d":2,"c":3}}     12 bytes for each entry of an open object,
//! moves    {d,c} at 12; {b,a} at 0       16 for each object that is not sorted, and 8 for each of its entries
//! line     {"a":{"c":3,"d":2},"b":1}
//! ```

mod entry;
pub(crate) mod memory;
pub(crate) mod text;

use std::ops::Range;

use memchr::memchr;
use work::Budget;

use crate::{FbcLimits, error::FbcErrorKind};
use entry::{ESCAPED, EscapedKeys, ObjectEntry, UnsortedObject};
use memory::{MemoryMeter, Text, offset};

/// Kind of a JSON container: object or array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    Object,
    Array,
}

/// An object or array that is not closed yet.
struct OpenContainer {
    kind: Container,
    sorted: bool,
    start: u32,
    /// Index of its first entry in `entries`.
    entries: u32,
    /// Size of the escaped keys before its own.
    keys: u32,
}

/// Key and canonical value of the outermost object.
pub(crate) struct Field<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: &'a [u8],
}

/// Builder of the canonical lines of one chunk. Its buffers are reused from one document to the
/// next.
pub(crate) struct LineBuilder {
    depth: usize,
    text: Text,
    keys: EscapedKeys,
    /// Entries of the open objects. Those of the outermost one stay after its end, because they are
    /// read later.
    entries: Vec<ObjectEntry>,
    open: Vec<OpenContainer>,
    moves: Vec<UnsortedObject>,
    order: Vec<Range<u32>>,
    line: Vec<u8>,
}

impl LineBuilder {
    /// Creates a builder for the documents of a chunk of this size. It fails once the work of
    /// `budget` is stopped.
    pub(crate) fn new(limits: &FbcLimits, chunk: usize, budget: &Budget) -> Self {
        Self {
            depth: limits.depth,
            text: Text::new(MemoryMeter::new(limits, chunk, budget), chunk),
            keys: EscapedKeys::default(),
            entries: Vec::new(),
            open: Vec::new(),
            moves: Vec::new(),
            order: Vec::new(),
            line: Vec::new(),
        }
    }

    /// Removes the previous document and keeps the buffers.
    pub(crate) fn clear(&mut self) {
        self.text.bytes.clear();
        self.keys.0.clear();
        self.entries.clear();
        self.open.clear();
        self.moves.clear();
        self.order.clear();
        self.line.clear();
    }

    /// Returns the kind of the innermost open container, if any.
    #[inline]
    pub(crate) fn kind(&self) -> Option<Container> {
        self.open.last().map(|open| open.kind)
    }

    /// Returns the number of bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.text.bytes.len()
    }

    /// Returns the counter of the memory that the documents of the chunk take.
    pub(crate) fn memory(&mut self) -> &mut MemoryMeter {
        &mut self.text.meter
    }

    /// Fails if the documents take more memory than the limit. To be called after every part of a
    /// document.
    #[inline]
    pub(crate) fn check_memory(&self) -> Result<(), FbcErrorKind> {
        self.text.meter.check()
    }

    /// Starts a value and returns the buffer to which its canonical form is appended.
    #[inline]
    pub(crate) fn value(&mut self) -> &mut Text {
        if let Some(open) = self.open.last()
            && open.kind == Container::Array
            && self.text.bytes.len() > open.start as usize + 1
        {
            self.text.push(b',');
        }
        &mut self.text
    }

    /// Starts an object or array. Fails if the depth limit is reached.
    pub(crate) fn begin(&mut self, kind: Container) -> Result<(), FbcErrorKind> {
        if self.open.len() >= self.depth {
            return Err(FbcErrorKind::limit("depth", self.depth));
        }
        let text = self.value();
        let start = text.bytes.len();
        text.push(if kind == Container::Object {
            b'{'
        } else {
            b'['
        });
        self.open.push(OpenContainer {
            kind,
            sorted: true,
            start: offset(start),
            entries: offset(self.entries.len()),
            keys: offset(self.keys.0.len()),
        });
        Ok(())
    }

    /// Starts an entry of the innermost open object.
    pub(crate) fn key(&mut self, key: &str) {
        let start = self.begin_key();
        text::quote(key, &mut self.text);
        self.end_key(start);
    }

    /// Starts an entry of the innermost open object, whose key is appended to [`Self::value`].
    /// Returns its offset.
    #[inline]
    pub(crate) fn begin_key(&mut self) -> usize {
        let open = self.open.last();
        if open.is_some_and(|open| (open.entries as usize) < self.entries.len()) {
            self.end_entry();
            self.text.push(b',');
        }
        self.text.bytes.len()
    }

    /// Sets the end of the last entry.
    #[inline]
    fn end_entry(&mut self) {
        if let Some(last) = self.entries.last_mut() {
            last.end = offset(self.text.bytes.len());
        }
    }

    /// Ends the key that starts at an offset.
    #[inline]
    pub(crate) fn end_key(&mut self, start: usize) {
        let quoted = &self.text.bytes[start..];
        let key = if memchr(b'\\', quoted).is_none() {
            // Text is at most 4 GiB, half of which a key never has: its source takes memory too.
            offset(quoted.len().saturating_sub(2)) & !ESCAPED
        } else {
            // The text is canonical JSON, so the conversion never fails.
            let key: String = serde_json::from_slice(quoted).unwrap_or_default();
            offset(self.keys.push(&key, &mut self.text.meter)) | ESCAPED
        };
        let entry = ObjectEntry {
            start: offset(start),
            end: 0,
            key,
        };
        self.text.push(b':');
        // What did not fit was dropped, so the offsets are wrong: the caller ends the document.
        if self.check_memory().is_err() {
            return;
        }
        let Some(open) = self.open.last_mut() else {
            return;
        };
        // Most documents are sorted already, so one comparison with the key before is all that they
        // cost.
        if let Some(last) = self.entries[open.entries as usize..].last()
            && last.key(&self.text.bytes, &self.keys) >= entry.key(&self.text.bytes, &self.keys)
        {
            open.sorted = false;
        }
        self.text.meter.push(&mut self.entries, entry);
    }

    /// Closes the innermost open object or array.
    pub(crate) fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if open.kind == Container::Array {
            self.text.push(b']');
            return;
        }
        let first = open.entries as usize;
        if first < self.entries.len() {
            self.end_entry();
        }
        self.text.push(b'}');
        if !open.sorted && self.check_memory().is_ok() {
            self.sort(&open);
        }
        // Nested entries are dropped as soon as their object is closed.
        if !self.open.is_empty() {
            self.keys.0.truncate(open.keys as usize);
            self.entries.truncate(first);
        }
    }

    /// Notes the right order of an object's entries. Of equal keys the last one wins, as in Go.
    fn sort(&mut self, open: &OpenContainer) {
        let text = &self.text.bytes;
        let keys = &self.keys;
        let key = |entry: &ObjectEntry| entry.key(text, keys);
        let entries = &mut self.entries[open.entries as usize..];
        // The position breaks ties, so that of equal keys the last one in the source stays last.
        entries.sort_unstable_by(|a, b| key(a).cmp(key(b)).then(a.start.cmp(&b.start)));
        let mut kept = 0;
        for at in 0..entries.len() {
            if at + 1 == entries.len() || key(&entries[at]) != key(&entries[at + 1]) {
                entries.swap(kept, at);
                kept += 1;
            }
        }
        self.entries.truncate(open.entries as usize + kept);
        let from = self.order.len();
        let meter = &mut self.text.meter;
        if !meter.reserve(&mut self.order, kept) {
            return;
        }
        let spans = self.entries[open.entries as usize..].iter();
        self.order.extend(spans.map(ObjectEntry::range));
        let object = UnsortedObject {
            start: open.start,
            end: offset(self.text.bytes.len()),
            order: offset(from)..offset(self.order.len()),
        };
        self.text.meter.push(&mut self.moves, object);
    }

    /// Returns the number of fields of the outermost object.
    pub(crate) fn field_count(&self) -> usize {
        self.entries.len()
    }

    /// Returns a key of the outermost object and its value. The keys are sorted.
    pub(crate) fn field(&self, at: usize) -> Field<'_> {
        let entry = &self.entries[at];
        // Keys come from `&str`, so the conversion never fails.
        Field {
            key: std::str::from_utf8(entry.key(&self.text.bytes, &self.keys)).unwrap_or_default(),
            value: &self.text.bytes[entry.value(&self.text.bytes)..entry.end as usize],
        }
    }

    /// Sorts what is not sorted and ends the line.
    pub(crate) fn finish(&mut self) -> Result<(), FbcErrorKind> {
        if self.moves.is_empty() {
            self.text.push(b'\n');
        } else {
            let Text { bytes, meter } = &mut self.text;
            entry::rearrange(bytes, &mut self.moves, &self.order, &mut self.line, meter);
            meter.push(&mut self.line, b'\n');
        }
        self.check_memory()
    }

    /// Returns the canonical line. Call [`Self::finish`] first.
    pub(crate) fn line(&self) -> &[u8] {
        if self.moves.is_empty() {
            &self.text.bytes
        } else {
            &self.line
        }
    }
}
