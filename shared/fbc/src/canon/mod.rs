//! Builds one canonical line out of the parts of a document, in whatever order they come.
//!
//! The parts are appended as canonical text in the order of the source. Objects whose keys turn
//! out not to be sorted are only noted; one last pass copies the text in the right order. So every
//! byte is moved at most once more, however deep the document is nested.

pub(crate) mod number;
mod rearrange;
pub(crate) mod text;

use std::ops::Range;

use crate::error::Problem;
use rearrange::Move;

/// The kinds of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
}

/// An object or array that is not closed yet.
#[derive(Debug)]
struct Open {
    kind: Kind,
    start: usize,
    /// The first of its entries.
    entries: usize,
    sorted: bool,
}

/// A key of an open object, and where its text is.
#[derive(Clone, Debug)]
struct Entry {
    /// The key without escapes, in `keys`.
    key: Range<usize>,
    /// Where `"key":` starts in `text`.
    start: usize,
    /// Where the value starts in `text`.
    value: usize,
    /// Where the value ends in `text`; set when the object is closed.
    end: usize,
}

/// A key of the document and its value.
#[derive(Debug)]
pub(crate) struct Field<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: &'a [u8],
}

/// The builder. Its buffers are kept from one document to the next.
#[derive(Debug, Default)]
pub(crate) struct Canon {
    depth: usize,
    text: Vec<u8>,
    keys: Vec<u8>,
    entries: Vec<Entry>,
    open: Vec<Open>,
    moves: Vec<Move>,
    order: Vec<Range<usize>>,
    line: Vec<u8>,
    top: Vec<Entry>,
}

impl Canon {
    pub(crate) fn new(depth: usize) -> Self {
        Self {
            depth,
            ..Self::default()
        }
    }

    /// Forgets the document before.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.keys.clear();
        self.entries.clear();
        self.open.clear();
        self.moves.clear();
        self.order.clear();
        self.line.clear();
        self.top.clear();
    }

    /// The container that is open, if any.
    #[inline]
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.open.last().map(|open| open.kind)
    }

    /// Bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Starts a value and gives the buffer to append its canonical form to.
    #[inline]
    pub(crate) fn value(&mut self) -> &mut Vec<u8> {
        if let Some(open) = self.open.last()
            && open.kind == Kind::Array
            && self.text.len() > open.start + 1
        {
            self.text.push(b',');
        }
        &mut self.text
    }

    /// Starts an object or array.
    pub(crate) fn begin(&mut self, kind: Kind) -> Result<(), Problem> {
        if self.open.len() == self.depth {
            return Err(Problem::Limit {
                name: "depth",
                limit: self.depth,
            });
        }
        let text = self.value();
        let start = text.len();
        text.push(if kind == Kind::Object { b'{' } else { b'[' });
        self.open.push(Open {
            kind,
            start,
            entries: self.entries.len(),
            sorted: true,
        });
        Ok(())
    }

    /// Starts an entry of the open object.
    pub(crate) fn key(&mut self, key: &str) {
        let start = self.start_entry();
        text::quote(key, &mut self.text);
        self.finish_key(start, key);
    }

    /// Starts an entry whose key is known to need no escapes.
    #[inline]
    pub(crate) fn plain_key(&mut self, key: &str) {
        let start = self.start_entry();
        self.text.push(b'"');
        self.text.extend_from_slice(key.as_bytes());
        self.text.push(b'"');
        self.finish_key(start, key);
    }

    #[inline]
    fn start_entry(&mut self) -> usize {
        if self.open.last().is_some_and(|open| open.entries < self.entries.len()) {
            self.text.push(b',');
        }
        self.text.len()
    }

    #[inline]
    fn finish_key(&mut self, start: usize, key: &str) {
        self.text.push(b':');
        let Some(open) = self.open.last_mut() else {
            return;
        };
        if let Some(last) = self.entries[open.entries..].last()
            && self.keys[last.key.clone()] >= *key.as_bytes()
        {
            open.sorted = false;
        }
        let from = self.keys.len();
        self.keys.extend_from_slice(key.as_bytes());
        self.entries.push(Entry {
            key: from..self.keys.len(),
            start,
            value: self.text.len(),
            end: 0,
        });
    }

    /// Closes the open object or array.
    pub(crate) fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if open.kind == Kind::Array {
            self.text.push(b']');
            return;
        }
        let last = self.open.is_empty();
        if !open.sorted || last {
            self.set_ends(open.entries);
        }
        self.text.push(b'}');
        if !open.sorted {
            self.sort(&open);
        }
        if last {
            std::mem::swap(&mut self.top, &mut self.entries);
        } else if let Some(first) = self.entries.get(open.entries) {
            self.keys.truncate(first.key.start);
            self.entries.truncate(open.entries);
        }
    }

    fn set_ends(&mut self, first: usize) {
        let mut end = self.text.len();
        for entry in self.entries[first..].iter_mut().rev() {
            entry.end = end;
            // The comma before an entry belongs to neither neighbour.
            end = entry.start.saturating_sub(1);
        }
    }

    /// Notes the right order of an object's entries. Of equal keys the last one stays.
    fn sort(&mut self, open: &Open) {
        let keys = &self.keys;
        let key = |entry: &Entry| &keys[entry.key.clone()];
        let entries = &mut self.entries[open.entries..];
        entries.sort_unstable_by(|a, b| key(a).cmp(key(b)).then(a.start.cmp(&b.start)));
        let mut kept = 0;
        for at in 0..entries.len() {
            if at + 1 == entries.len() || key(&entries[at]) != key(&entries[at + 1]) {
                entries.swap(kept, at);
                kept += 1;
            }
        }
        self.entries.truncate(open.entries + kept);
        let from = self.order.len();
        let spans = self.entries[open.entries..].iter();
        self.order.extend(spans.map(|entry| entry.start..entry.end));
        self.moves.push(Move {
            start: open.start,
            end: self.text.len(),
            order: from..self.order.len(),
        });
    }

    /// The keys of the document and their values, in order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        self.top.iter().map(|entry| Field {
            // Keys come from `&str`, so this never fails.
            key: std::str::from_utf8(&self.keys[entry.key.clone()]).unwrap_or_default(),
            value: &self.text[entry.value..entry.end],
        })
    }

    /// Ends the line.
    pub(crate) fn finish(&mut self) {
        if !self.moves.is_empty() {
            rearrange::rearrange(&self.text, &mut self.moves, &self.order, &mut self.line);
        }
        let sorted = self.moves.is_empty();
        let line = if sorted { &mut self.text } else { &mut self.line };
        line.push(b'\n');
    }

    /// The canonical line; only after [`Self::finish`].
    pub(crate) fn line(&self) -> &[u8] {
        if self.moves.is_empty() { &self.text } else { &self.line }
    }
}
