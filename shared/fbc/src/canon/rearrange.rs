use super::TextRange;
use super::memory::MemoryMeter;

/// Object whose entries are not sorted.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnsortedObject {
    /// Offset of its `{` in the text.
    pub(super) start: u32,
    /// Offset after its `}` in the text.
    pub(super) end: u32,
    /// Its entries in order, as a range of the list of text ranges.
    pub(super) order: TextRange,
}

enum CopyTask {
    /// Copy this part of the text.
    Text(TextRange),
    /// Copy these entries of an object; the flag is true before the first one.
    Entries(TextRange, bool),
}

/// Copies `text` to `out` and sorts the entries of every noted object.
pub(super) fn rearrange(
    text: &[u8],
    moves: &mut [UnsortedObject],
    order: &[TextRange],
    out: &mut Vec<u8>,
    meter: &mut MemoryMeter,
) {
    // Objects are noted when they are closed, inner ones first; the copy needs them in the order of the text.
    moves.sort_unstable_by_key(|object| object.start);
    // At most: entries that a later one replaces are left out.
    if !meter.reserve(out, text.len() + 1) {
        return;
    }
    let mut copy = Copier { text, moves, out };
    // A stack instead of recursion: the input decides the depth, and a deep one must not overflow the thread's stack.
    let mut todo = vec![CopyTask::Text(TextRange::new(0, text.len()))];
    while let Some(next) = todo.pop() {
        match next {
            CopyTask::Text(range) => copy.range(range, &mut todo),
            CopyTask::Entries(entries, first) => {
                if entries.start == entries.end {
                    continue;
                }
                if !first {
                    copy.out.push(b',');
                }
                let rest = TextRange {
                    start: entries.start + 1,
                    ..entries
                };
                todo.push(CopyTask::Entries(rest, false));
                todo.push(CopyTask::Text(order[entries.start as usize]));
            }
        }
    }
}

struct Copier<'a> {
    text: &'a [u8],
    moves: &'a [UnsortedObject],
    out: &'a mut Vec<u8>,
}

impl Copier<'_> {
    /// Copies `range` up to the first unsorted object in it and pushes what is left to copy.
    fn range(&mut self, range: TextRange, todo: &mut Vec<CopyTask>) {
        let next = self.moves.partition_point(|object| object.start < range.start);
        match self.moves.get(next) {
            Some(object) if object.start < range.end => {
                let before = range.start as usize..=object.start as usize;
                self.out.extend_from_slice(&self.text[before]);
                todo.push(CopyTask::Text(TextRange {
                    start: object.end - 1,
                    end: range.end,
                }));
                todo.push(CopyTask::Entries(object.order, true));
            }
            _ => self.out.extend_from_slice(&self.text[range.indexes()]),
        }
    }
}
