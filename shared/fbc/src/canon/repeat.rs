//! Copies values that were read before: those of aliases and merge keys.

use memchr::memchr;

use crate::error::FbcErrorKind;
use crate::json;

use super::entry::ObjectEntry;
use super::entry::UnsortedObject;
use super::{Container, LineBuilder, TextRange, offset};

impl LineBuilder {
    /// Sets the largest number of open containers back to those that are open now, and returns it as it was.
    pub(crate) fn reset_deepest(&mut self) -> usize {
        std::mem::replace(&mut self.deepest, self.open.len())
    }

    /// Returns the number of containers that were nested in the open ones since [`Self::reset_deepest`] returned `before`.
    pub(crate) fn depth_since_reset(&mut self, before: usize) -> usize {
        let depth = self.deepest.saturating_sub(self.open.len());
        self.deepest = self.deepest.max(before);
        depth
    }

    /// Appends a copy of a value that has this many nested containers.
    pub(crate) fn repeat_value(&mut self, range: TextRange, depth: usize) -> Result<(), FbcErrorKind> {
        self.check_depth(depth)?;
        self.deepest = self.deepest.max(self.open.len() + depth);
        self.value();
        self.copy(range);
        self.check_memory()
    }

    /// Appends a copy of the entries of an object to the innermost open one. `range` may leave out the braces.
    pub(crate) fn repeat_entries(&mut self, range: TextRange, depth: usize) -> Result<(), FbcErrorKind> {
        // The entries take the place of their object.
        let depth = depth.saturating_sub(1);
        self.check_depth(depth)?;
        self.deepest = self.deepest.max(self.open.len() + depth);
        let mut at = range.start as usize;
        at += usize::from(self.text[at..].first() == Some(&b'{'));
        while at < range.end as usize {
            match self.text[at] {
                b'"' => at = self.repeat_entry(at)?,
                // The list of a merge key stays in the text, but is not part of the object.
                b'[' => at = value_end(&self.text, at),
                // A comma, or the end.
                _ => at += 1,
            }
        }
        Ok(())
    }

    /// Appends a copy of the entry at an offset and returns its end.
    fn repeat_entry(&mut self, at: usize) -> Result<usize, FbcErrorKind> {
        let colon = string_end(&self.text, at);
        let end = value_end(&self.text, colon + 1);
        let plain = memchr(b'\\', &self.text[at..colon]).is_none();
        let start = self.start_entry();
        let entry = if plain {
            ObjectEntry::plain(start, colon - at - 2)
        } else {
            // The text is canonical JSON, so the conversion never fails.
            let key: String = serde_json::from_slice(&self.text[at..colon]).unwrap_or_default();
            let place = self.keys.push(&key, &mut self.text.meter);
            ObjectEntry::escaped(start, place)
        };
        self.text.repeat(at, colon);
        self.finish_key(start, entry);
        self.copy(TextRange::new(colon + 1, end));
        self.check_memory()?;
        Ok(end)
    }

    /// Appends a copy of one or several values, and notes which of their objects are not sorted.
    fn copy(&mut self, range: TextRange) {
        let delta = offset(self.text.len()) - range.start;
        // Objects are noted when they end, so the list is sorted by their ends.
        let first = self.moves.partition_point(|object| object.end <= range.start);
        let last = self.moves.partition_point(|object| object.end <= range.end);
        self.text.repeat(range.start as usize, range.end as usize);
        for at in first..last {
            let object = self.moves[at];
            if object.start < range.start {
                continue;
            }
            let from = self.order.len();
            if !self.text.meter.reserve(&mut self.order, object.order.len()) {
                return;
            }
            for entry in object.order.indexes() {
                let moved = self.order[entry].moved(delta);
                self.order.push(moved);
            }
            let copy = UnsortedObject {
                start: object.start + delta,
                end: object.end + delta,
                order: TextRange::new(from, self.order.len()),
            };
            self.text.meter.push(&mut self.moves, copy);
        }
    }

    /// Starts the list of a merge key. It is not part of the object around it: only [`Self::repeat_entries`] reads it.
    pub(crate) fn begin_aside(&mut self) -> Result<usize, FbcErrorKind> {
        if let Some(open) = self.open.last_mut() {
            // The last pass copies the entries one by one, and so leaves out what is between them.
            open.sorted = false;
            if (open.entries as usize) < self.entries.len() {
                self.end_entry();
            }
        }
        // The list and its items.
        self.uncounted += 2;
        self.begin(Container::Array)
    }

    /// Ends the list of a merge key.
    pub(crate) fn end_aside(&mut self) {
        self.end();
        self.uncounted = self.uncounted.saturating_sub(2);
    }

    /// Returns the string at an offset of the text, without escapes.
    pub(crate) fn string_at(&self, range: TextRange) -> String {
        serde_json::from_slice(&self.text[range.indexes()]).unwrap_or_default()
    }

    /// Returns the range of the value at an offset of the text.
    pub(crate) fn value_at(&self, at: u32) -> TextRange {
        TextRange::new(at as usize, value_end(&self.text, at as usize))
    }
}

impl TextRange {
    fn moved(self, delta: u32) -> Self {
        Self {
            start: self.start + delta,
            end: self.end + delta,
        }
    }
}

/// Returns the end of the string at an offset of canonical text.
pub(super) fn string_end(text: &[u8], at: usize) -> usize {
    json::string_end(text, at + 1).unwrap_or(text.len())
}

/// Returns the end of the value at an offset of canonical text.
fn value_end(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'"') => string_end(text, at),
        Some(b'{' | b'[') => json::value_end(text, at).unwrap_or(text.len()),
        _ => {
            // A number or a word, which the list of a merge key may follow.
            let rest = text.get(at..).unwrap_or_default().iter();
            at + rest.take_while(|byte| !b",{[}]".contains(byte)).count()
        }
    }
}
