//! Properties that hold for every FBC file.

use std::io::{self, Read};

use fbc::{Chunks, FbcError, FbcLimits};
use serde_json::Value;

use crate::memory;

/// Chunk size at which no file is cut.
const WHOLE: usize = usize::MAX >> 1;

/// Number of bytes in which the decoder detects the format. Chunks are never smaller.
const PEEK: usize = 4096;

/// Maximum depth that `serde_json` accepts.
const DEPTH: usize = 127;

/// Reader that returns a few bytes at a time, as a network may.
struct Dribble<'a>(&'a [u8]);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let some = buffer.len().min(self.0.len() % 7 + 1);
        self.0.read(&mut buffer[..some])
    }
}

/// Size below which documents may take as much memory as one of this size, in bytes.
const SMALL: usize = 512 << 10;

/// Memory that is not counted and does not grow with the document, in bytes: 200 KiB were seen.
const CONSTANT: usize = 256 << 10;

/// Returns the canonical lines of a file, after checking all that needs no second parser.
pub(crate) fn checked_lines(file: &[u8], filler: &str) -> Option<Vec<Value>> {
    check_memory(file);
    if file.len() > SMALL {
        // The other checks would take too long for a large file.
        return None;
    }
    let lines = cut_anywhere(file);
    // Chunks are never small, so only a long file is cut at all.
    let long = [file, filler.repeat(PEEK / filler.len()).as_bytes(), file].concat();
    cut_anywhere(&long);
    let lines = lines?;
    let again = canonical(&lines, WHOLE).expect("canonical lines are canonical lines' form");
    assert_eq!(
        text(&again),
        text(&lines),
        "the canonical form has another one"
    );
    lines
        .split_inclusive(|byte| *byte == b'\n')
        .map(value)
        .collect()
}

/// Checks the promise of [`FbcLimits::memory_ratio`] for the memory that parsing takes and for the
/// lines.
fn check_memory(file: &[u8]) {
    let limits = FbcLimits::default();
    let limit = limits.memory_ratio * file.len().max(SMALL) + CONSTANT;
    let start = text(&file[..file.len().min(1000)]);
    let lines = memory::within(limit, &start, || {
        let mut lines = 0;
        for chunk in Chunks::new(file, limits, WHOLE) {
            let read =
                chunk.and_then(|chunk| chunk.metas(&limits, &mut |meta| lines += meta.line.len()));
            if read.is_err() {
                return 0;
            }
        }
        lines
    });
    assert!(lines <= limit, "{lines} bytes of lines from {start}");
}

/// Returns the lines of a file and checks that they do not depend on the chunk size.
fn cut_anywhere(file: &[u8]) -> Option<Vec<u8>> {
    let whole = canonical(file, WHOLE);
    let cut = canonical(file, 0);
    match (whole, cut) {
        (Ok(whole), Ok(cut)) => {
            assert_eq!(text(&whole), text(&cut), "a cut changes what is in it");
            Some(whole)
        }
        // For input that is neither JSON nor YAML, the chunk size may decide which of the two
        // errors is reported.
        (Err(_), Err(_)) => None,
        (whole, cut) => panic!("whole: {whole:?}, cut: {cut:?}"),
    }
}

fn canonical(file: &[u8], target: usize) -> Result<Vec<u8>, FbcError> {
    let limits = FbcLimits::default();
    let mut lines = Vec::new();
    for chunk in Chunks::new(Dribble(file), limits, target) {
        chunk?.metas(&limits, &mut |meta| lines.extend_from_slice(meta.line))?;
    }
    Ok(lines)
}

/// Parses a canonical line with `serde_json`, which must print it unchanged; `None` beyond its
/// maximum depth.
fn value(line: &[u8]) -> Option<Value> {
    if line.iter().filter(|byte| b"[{".contains(byte)).count() > DEPTH {
        return None;
    }
    let (end, line) = line.split_last().expect("a line has an end");
    assert_eq!(*end, b'\n');
    let value: Value =
        serde_json::from_slice(line).unwrap_or_else(|error| panic!("{}: {error}", text(line)));
    if !has_float(&value) {
        // The crate sorts keys, and Go escapes two more characters.
        let expected = value.to_string().replace('\u{2028}', "\\u2028");
        let expected = expected.replace('\u{2029}', "\\u2029");
        assert_eq!(text(line), expected, "not as it should be printed");
    }
    Some(value)
}

/// Returns true if a value holds a number that others print differently.
fn has_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_float),
        Value::Object(map) => map.values().any(has_float),
        _ => false,
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
