use std::ops::Range;

/// An object whose entries are not in order.
#[derive(Debug)]
pub(super) struct Move {
    /// Where its `{` is.
    pub(super) start: usize,
    /// The end of its `}`.
    pub(super) end: usize,
    /// Its entries in order: a range of the list of text ranges.
    pub(super) order: Range<usize>,
}

enum Todo {
    /// A part of the text.
    Text(Range<usize>),
    /// Entries of an object, and whether they are the first ones.
    Entries(Range<usize>, bool),
}

/// Copies `text` to `out` with the entries of every noted object in order.
pub(super) fn rearrange(text: &[u8], moves: &mut [Move], order: &[Range<usize>], out: &mut Vec<u8>) {
    moves.sort_unstable_by_key(|object| object.start);
    out.reserve(text.len() + 1);
    // A list of things to do instead of recursion: how deep it goes is the input's choice.
    let mut todo = vec![Todo::Text(0..text.len())];
    while let Some(next) = todo.pop() {
        match next {
            Todo::Text(range) => copy(text, range, moves, out, &mut todo),
            Todo::Entries(mut entries, first) => {
                let Some(entry) = entries.next() else {
                    continue;
                };
                if !first {
                    out.push(b',');
                }
                todo.push(Todo::Entries(entries, false));
                todo.push(Todo::Text(order[entry].clone()));
            }
        }
    }
}

/// Copies `range` up to the first object in it that needs order, and notes what is left to do.
fn copy(text: &[u8], range: Range<usize>, moves: &[Move], out: &mut Vec<u8>, todo: &mut Vec<Todo>) {
    let next = moves.partition_point(|object| object.start < range.start);
    match moves.get(next) {
        Some(object) if object.start < range.end => {
            out.extend_from_slice(&text[range.start..=object.start]);
            todo.push(Todo::Text(object.end - 1..range.end));
            todo.push(Todo::Entries(object.order.clone(), true));
        }
        _ => out.extend_from_slice(&text[range]),
    }
}
