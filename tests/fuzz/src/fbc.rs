//! What holds for every file, whatever is in it.

use std::io::{self, Read};

use fbc::{Chunks, Error, Limits};
use serde_json::Value;

/// No file is cut into chunks of this size.
const WHOLE: usize = usize::MAX >> 1;

/// The decoder looks no further than this for what a file is, and cuts no smaller chunks.
const PEEK: usize = 4096;

/// `serde_json` goes no deeper.
const DEPTH: usize = 127;

/// Gives a few bytes at a time, as a network may.
struct Dribble<'a>(&'a [u8]);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let some = buffer.len().min(self.0.len() % 7 + 1);
        self.0.read(&mut buffer[..some])
    }
}

/// The canonical lines of a file, once all that can be said of it without a second opinion was checked.
pub(crate) fn checked_lines(file: &[u8], filler: &str) -> Option<Vec<Value>> {
    let lines = cut_anywhere(file);
    // Chunks are never small: only what is long is cut at all.
    let long = [file, filler.repeat(PEEK / filler.len()).as_bytes(), file].concat();
    cut_anywhere(&long);
    let lines = lines?;
    let again = canonical(&lines, WHOLE).expect("canonical lines are canonical lines' form");
    assert_eq!(text(&again), text(&lines), "the canonical form has another one");
    lines.split_inclusive(|byte| *byte == b'\n').map(value).collect()
}

/// Whether two numbers are the same to `serde_json`, whose last bit is not always the right one.
pub(crate) fn close(a: Option<f64>, b: Option<f64>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    a == b || (a - b).abs() <= a.abs() * 2.0 * f64::EPSILON
}

/// The lines of a file, which are the same wherever it is cut.
fn cut_anywhere(file: &[u8]) -> Option<Vec<u8>> {
    let whole = canonical(file, WHOLE);
    let cut = canonical(file, 0);
    match (whole, cut) {
        (Ok(whole), Ok(cut)) => {
            assert_eq!(text(&whole), text(&cut), "a cut changes what is in it");
            Some(whole)
        }
        // Of what is neither JSON nor YAML, a cut may decide which of both is blamed, and so for what.
        (Err(_), Err(_)) => None,
        (whole, cut) => panic!("whole: {whole:?}, cut: {cut:?}"),
    }
}

fn canonical(file: &[u8], target: usize) -> Result<Vec<u8>, Error> {
    let limits = Limits::default();
    let mut lines = Vec::new();
    for chunk in Chunks::new(Dribble(file), limits, target) {
        chunk?.metas(&limits, &mut |meta| lines.extend_from_slice(meta.line))?;
    }
    Ok(lines)
}

/// A canonical line by a parser that is not ours, which has to print it as we do; `None` if it gives up at its depth.
fn value(line: &[u8]) -> Option<Value> {
    if line.iter().filter(|byte| b"[{".contains(byte)).count() > DEPTH {
        return None;
    }
    let (end, line) = line.split_last().expect("a line has an end");
    assert_eq!(*end, b'\n');
    let value: Value = serde_json::from_slice(line).unwrap_or_else(|error| panic!("{}: {error}", text(line)));
    if let Some(expected) = print(&value) {
        assert_eq!(text(line), expected, "not as it should be printed");
    }
    Some(value)
}

/// Keys in byte order, no spaces, and what Go escapes; `None` with numbers that others print in another way.
fn print(value: &Value) -> Option<String> {
    let string = |text: &str| {
        let json = Value::from(text).to_string();
        json.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
    };
    Some(match value {
        Value::Number(number) if number.is_f64() => return None,
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => string(text),
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(print).collect();
            format!("[{}]", items?.join(","))
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let entries = entries.into_iter();
            let entries: Option<Vec<String>> = entries
                .map(|(key, value)| Some(format!("{}:{}", string(key), print(value)?)))
                .collect();
            format!("{{{}}}", entries?.join(","))
        }
    })
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
